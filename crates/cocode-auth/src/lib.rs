//! Secrets and credentials of cocode, the MCP runtime.
