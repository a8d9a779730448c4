//! What a linked file says of itself: notes and needed libraries.
