//! Managed client sessions for MCP servers, in every transport and protocol revision.
