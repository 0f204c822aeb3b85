//! Files that the command line names, or stdin, within a bound.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::error::{CliError, Code};
use crate::text::size;

/// The largest file that is read.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Means stdin where a file is expected.
pub(crate) const STDIN: &str = "-";

/// The bytes of a file, or of stdin for `-`.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let bytes = if path.as_os_str() == STDIN {
        bounded(io::stdin().lock())
            .map_err(|error| CliError::new(Code::FileError, "cannot read stdin").because(&error))?
    } else {
        let read = File::open(path).and_then(bounded);
        read.map_err(|error| CliError::file("read", path, &error))?
    };
    if bytes.len() > MAX_BYTES {
        let message = format!(
            "`{}` is too large: at most {} are read",
            shown(path),
            size(MAX_BYTES)
        );
        return Err(CliError::new(Code::FileError, message));
    }
    // As some editors begin their files.
    Ok(match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => rest.to_vec(),
        None => bytes,
    })
}

/// One byte more than there may be, if there are so many.
fn bounded(source: impl Read) -> io::Result<Vec<u8>> {
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    source
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file that is not what it should be: `what` it is to be, and what is wrong.
pub(crate) fn bad_file(path: &Path, what: &str, wrong: impl Into<String>) -> CliError {
    let message = format!("`{}` is no {what}", shown(path));
    let mut error = CliError::new(Code::FileError, message);
    error.causes.push(wrong.into());
    error
}

fn shown(path: &Path) -> String {
    if path.as_os_str() == STDIN {
        "stdin".to_owned()
    } else {
        path.display().to_string()
    }
}
