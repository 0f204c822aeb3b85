//! What each server wrote and what became of it, in one rotated file for each.
