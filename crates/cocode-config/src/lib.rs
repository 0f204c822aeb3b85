//! Configuration of cocode, the MCP runtime: files in, server specifications with their origin out.
