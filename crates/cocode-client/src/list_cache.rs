//! Remembers on disk what servers listed, so that it is known before they have started.
