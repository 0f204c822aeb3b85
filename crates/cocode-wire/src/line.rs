//! Newline-delimited frames over any byte stream: the framing of stdio, unix sockets and memory.

pub(crate) mod cork;
pub(crate) mod link;
pub(crate) mod reader;
pub(crate) mod splitter;
pub(crate) mod writer;
