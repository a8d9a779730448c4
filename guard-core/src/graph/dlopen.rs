//! The libraries that a program opens by name, as a note that other tools read too.
