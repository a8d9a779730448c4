//! What the loader, and then the shim, would say: without running the program.
