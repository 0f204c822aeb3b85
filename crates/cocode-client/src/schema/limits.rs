//! The bounds within which schemas and values are looked at.
//!
//! Schemas come from servers, and so do the values of structured results: neither may stall this
//! process or exhaust its stack.

/// The text of one schema.
pub(super) const MAX_SCHEMA_BYTES: usize = 512 * 1024;
/// How deep a schema may be nested; the JSON parser itself stops at 127.
pub(super) const MAX_SCHEMA_DEPTH: usize = 100;
/// How deep a value may be nested; the JSON parser itself stops at 127.
pub(super) const MAX_VALUE_DEPTH: usize = 120;

/// How many schemas may apply to one value by reference and combination, one within the other.
pub(super) const MAX_CHAIN: u32 = 64;
/// How many schemas may apply to one value altogether. Nothing remembers the outcome for plain
/// values, so without this bound thirty definitions could ask for a billion checks.
pub(super) const MAX_FAN: u64 = 10_000;

/// Regular expressions in one schema; those beyond are not checked.
pub(super) const MAX_PATTERNS: usize = 64;
/// The compiled size of one regular expression, in bytes.
pub(super) const MAX_PATTERN_SIZE: usize = 256 * 1024;

/// Steps that every check may take, whatever the size of the value.
pub(super) const BASE_STEPS: u64 = 1_000_000;
/// Steps that a check may take for each byte of the value.
pub(super) const STEPS_PER_BYTE: u64 = 10;
/// Steps for finding all problems; when they are used up, only the first one is told.
pub(super) const EXPLAIN_STEPS: u64 = 200_000;

/// Schemas within schemas that fit on any stack; what is deeper gets a stack of its own.
pub(super) const INLINE_LEVELS: u32 = 128;
/// The stack for what is deeper; only what is used of it costs memory.
pub(super) const DEEP_STACK_BYTES: usize = 256 * 1024 * 1024;

/// Problems told at once.
pub(super) const MAX_PROBLEMS: usize = 8;
/// Characters of a value, a name or a pattern that are repeated.
pub(super) const MAX_SHOWN_CHARS: usize = 60;
/// Characters of a description that are repeated.
pub(super) const MAX_DESCRIPTION_CHARS: usize = 120;
/// Names or values listed at once.
pub(super) const MAX_LISTED: usize = 12;
/// Names or values among which a near one is looked for.
pub(super) const MAX_COMPARED: usize = 500;
/// The length of a name or value that is compared with others, in bytes.
pub(super) const MAX_COMPARED_BYTES: usize = 100;
/// Characters of a path that are shown; the end says more than the beginning.
pub(super) const MAX_PATH_CHARS: usize = 300;
