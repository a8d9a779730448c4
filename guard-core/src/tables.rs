//! The project's tables (`data/*.toml`), read once, and the questions that are asked of them.
