//! Scripted servers and fault injectors for the tests of cocode.
