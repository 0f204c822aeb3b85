//! Many servers that fail in every way that a server can fail.

mod faulty;
mod servers;
