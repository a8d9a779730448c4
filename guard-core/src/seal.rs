//! Writes the observed truth into the note of a linked file.
