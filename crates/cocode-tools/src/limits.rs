//! Every bound of this crate. Whatever is cut at one of them is said in the output.

use std::time::Duration;

/// A path as an argument.
pub(crate) const MAX_PATH_BYTES: usize = 4096;

/// Symbolic links followed for one path, as many as Linux follows.
pub(crate) const MAX_LINKS: usize = 40;

/// How often a path is resolved again when somebody changes it meanwhile.
pub(crate) const MAX_RACES: usize = 16;

/// Calls that work on one file or directory at the same time; more wait.
pub(crate) const MAX_FILE_CALLS: usize = 8;

/// Searches at the same time; more wait. Apart from the others, because they can take long.
pub(crate) const MAX_SEARCH_CALLS: usize = 4;

/// Shell commands at the same time; more wait.
pub(crate) const MAX_SHELL_CALLS: usize = 8;

/// How much of a file decides whether it is text.
pub(crate) const SNIFF_BYTES: usize = 8 * 1024;

/// One read from a file.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

/// Lines that `read` gives when nothing is said.
pub(crate) const DEFAULT_READ_LINES: u64 = 2_000;

/// Lines that `read` gives at most.
pub(crate) const MAX_READ_LINES: u64 = 20_000;

/// Text that `read` gives at most.
pub(crate) const MAX_READ_BYTES: usize = 256 * 1024;

/// How far into a file `read` looks for its lines.
pub(crate) const MAX_READ_SCAN_BYTES: u64 = 1024 * 1024 * 1024;

/// How far `read` looks on, when it has its lines, to say how many there are.
pub(crate) const MAX_READ_COUNT_BYTES: u64 = 16 * 1024 * 1024;

/// One line in any output.
pub(crate) const MAX_LINE_BYTES: usize = 2_000;

/// An image given as content; 5 MiB in base64, which is what providers take.
pub(crate) const MAX_IMAGE_BYTES: u64 = 3_932_160;

/// Entries looked at in one directory.
pub(crate) const MAX_DIRECTORY_ENTRIES: usize = 50_000;

/// Entries that `list` shows when nothing is said, and at most.
pub(crate) const DEFAULT_LIST_ENTRIES: usize = 500;
/// See [`DEFAULT_LIST_ENTRIES`].
pub(crate) const MAX_LIST_ENTRIES: usize = 5_000;

/// Paths that `find` shows when nothing is said, and at most.
pub(crate) const DEFAULT_FIND_PATHS: usize = 200;
/// See [`DEFAULT_FIND_PATHS`].
pub(crate) const MAX_FIND_PATHS: usize = 2_000;

/// Lines that `grep` shows when nothing is said, and at most.
pub(crate) const DEFAULT_GREP_MATCHES: usize = 100;
/// See [`DEFAULT_GREP_MATCHES`].
pub(crate) const MAX_GREP_MATCHES: usize = 1_000;

/// Lines around a match.
pub(crate) const MAX_GREP_CONTEXT: usize = 20;

/// Text that `grep`, `find` and `list` give at most.
pub(crate) const MAX_RESULT_BYTES: usize = 128 * 1024;

/// A file that `grep` searches.
pub(crate) const MAX_GREP_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// A pattern, be it a regular expression or a glob.
pub(crate) const MAX_PATTERN_BYTES: usize = 4 * 1024;

/// A compiled regular expression. The slowest ones take time in proportion to it for every byte
/// that they search.
pub(crate) const MAX_REGEX_BYTES: usize = 1024 * 1024;

/// So much of a file is searched before `grep` asks whether it should go on.
pub(crate) const GREP_BLOCK_BYTES: usize = 128 * 1024;

/// Directory entries that one search looks at.
pub(crate) const MAX_WALK_ENTRIES: u64 = 1_000_000;

/// Directories within directories; each one costs a descriptor.
pub(crate) const MAX_WALK_DEPTH: usize = 64;

/// How long one search may take.
pub(crate) const MAX_WALK_TIME: Duration = Duration::from_secs(30);

/// So many entries between two reports of progress.
pub(crate) const PROGRESS_ENTRIES: u64 = 1_000;

/// A `.gitignore`; a longer one is left unread.
pub(crate) const MAX_IGNORE_FILE_BYTES: u64 = 512 * 1024;

/// A file that `edit` changes, or makes.
pub(crate) const MAX_EDIT_BYTES: u64 = 16 * 1024 * 1024;

/// A file that `write` makes.
pub(crate) const MAX_WRITE_BYTES: usize = 16 * 1024 * 1024;

/// Places named when the text to replace is there more than once.
pub(crate) const MAX_PLACES: usize = 5;

/// A shell command. Linux takes at most 128 KiB in one argument.
pub(crate) const MAX_COMMAND_BYTES: usize = 64 * 1024;

/// How long a shell command may take when nothing is said.
pub(crate) const DEFAULT_SHELL_TIME: Duration = Duration::from_mins(2);

/// How long a shell command may take at most.
pub(crate) const MAX_SHELL_TIME: Duration = Duration::from_hours(1);

/// The beginning of a command's output, all of it kept.
pub(crate) const SHELL_HEAD_BYTES: usize = 24 * 1024;

/// The end of a command's output.
pub(crate) const SHELL_TAIL_BYTES: usize = 40 * 1024;

/// Files of the workspace that other programs execute and that are watched during a command.
pub(crate) const MAX_HOOK_FILES: usize = 256;
/// The size of each.
pub(crate) const MAX_HOOK_BYTES: u64 = 1024 * 1024;

/// How often a running command is reported.
pub(crate) const SHELL_REPORT: Duration = Duration::from_millis(500);

/// How long processes may take to exit when they are asked to, before they are killed.
pub(crate) const SHELL_TERM_GRACE: Duration = Duration::from_secs(1);

/// How long the rest of the output may take to arrive when every process is gone.
pub(crate) const SHELL_DRAIN: Duration = Duration::from_millis(500);
