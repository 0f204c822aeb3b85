//! Vocabulary and pure decisions of cocode, the MCP runtime: server and tool names.
