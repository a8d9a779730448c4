//! Which file the loader would take for a name, and why: the rules of glibc's ld.so and of musl.
