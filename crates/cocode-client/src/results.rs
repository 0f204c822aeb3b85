//! Keeps results that are too large to show, under handles by which they can be read later.
