//! Whether a build is still true: contents, not times.
