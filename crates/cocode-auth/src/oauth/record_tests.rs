//! Records: what is written can be read, and what cannot be read is told without values.
