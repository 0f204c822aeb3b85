//! Checks values against the JSON Schemas of tools, and says in words how to mend them.
