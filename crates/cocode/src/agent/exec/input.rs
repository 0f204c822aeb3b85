//! What is said to the model: the prompt, what is piped in, and images.

use std::io::{self, IsTerminal as _, Read as _, stdin};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cocode_agent::Block;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::args::agent::ExecArgs;
use crate::error::{CliError, Code};
use crate::printer::Printer;

/// Bytes of what is piped in.
const MAX_STDIN_BYTES: u64 = 4 * 1024 * 1024;
/// How long it takes until somebody is told that stdin is waited for.
const WAITED_SILENTLY: Duration = Duration::from_secs(1);
/// How long stdin is waited for after that, where there is a prompt without it. Many programs that pipe
/// into this one take a while to begin; some that start it leave a pipe open into which nobody writes.
const WAITED_ALOUD: Duration = Duration::from_secs(9);
/// Bytes of an image, which has to fit into a record of the store together with others.
const MAX_IMAGE_BYTES: u64 = 5 * 1024 * 1024;

pub(super) fn said(args: &ExecArgs, printer: &Printer) -> Result<Vec<Block>, CliError> {
    let is_piped = !stdin().is_terminal();
    let prompt = args.prompt.as_deref();
    let text = match prompt {
        Some("-") | None if is_piped => piped()?.unwrap_or_default(),
        Some("-") | None => {
            let message = "there is no prompt, and nothing is piped in";
            return Err(
                CliError::new(Code::InvalidUsage, message).hint("cocode exec 'What is to be done'")
            );
        }
        Some(prompt) if is_piped && !is_anything_piped(printer) => prompt.to_owned(),
        Some(prompt) if is_piped => match piped()? {
            Some(piped) => format!("{prompt}\n\n<stdin>\n{piped}\n</stdin>"),
            None => prompt.to_owned(),
        },
        Some(prompt) => prompt.to_owned(),
    };
    if text.trim().is_empty() && args.image.is_empty() {
        return Err(CliError::new(Code::InvalidUsage, "the prompt is empty")
            .hint("cocode exec 'What is to be done'"));
    }
    let mut blocks = vec![Block::text(text)];
    for path in &args.image {
        blocks.push(image(path)?);
    }
    Ok(blocks)
}

/// Whether something is piped in, or nothing will be, in time.
fn is_anything_piped(printer: &Printer) -> bool {
    if arrives(stdin(), WAITED_SILENTLY) {
        return true;
    }
    printer.note("waiting for what is piped in; with `< /dev/null` nothing is");
    if arrives(stdin(), WAITED_ALOUD) {
        return true;
    }
    printer.warn("nothing was piped in so far, so the prompt is all that is said");
    false
}

/// Whether there is something to read, or its end, within this time. Whatever cannot be waited for, such as
/// a file, is there already.
fn arrives(source: impl AsFd, within: Duration) -> bool {
    let Ok(within) = Timespec::try_from(within) else {
        return true;
    };
    loop {
        let mut sources = [PollFd::new(&source, PollFlags::IN)];
        match poll(&mut sources, Some(&within)) {
            Ok(n_ready) => return n_ready > 0,
            Err(Errno::INTR) => {}
            Err(error) => {
                let error = io::Error::from(error);
                tracing::debug!(%error, "stdin cannot be waited for");
                return true;
            }
        }
    }
}

/// What is piped in, if there is anything.
fn piped() -> Result<Option<String>, CliError> {
    let mut bytes = Vec::new();
    let read = stdin()
        .lock()
        .take(MAX_STDIN_BYTES + 1)
        .read_to_end(&mut bytes);
    read.map_err(|error| CliError::new(Code::FileError, "stdin cannot be read").because(&error))?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        let message = format!("more than {MAX_STDIN_BYTES} bytes are piped in");
        return Err(CliError::new(Code::InvalidUsage, message)
            .hint("write it to a file, and name the file in the prompt"));
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok((!text.trim().is_empty()).then_some(text))
}

pub(crate) fn image(path: &Path) -> Result<Block, CliError> {
    let wrong = |what: &str| {
        let message = format!("the image {} cannot be used: {what}", path.display());
        CliError::new(Code::FileError, message)
    };
    let size = std::fs::metadata(path).map_err(|error| wrong(&error.to_string()))?;
    if size.len() > MAX_IMAGE_BYTES {
        return Err(wrong("it is larger than 5 MiB"));
    }
    let bytes = std::fs::read(path).map_err(|error| wrong(&error.to_string()))?;
    let media_type = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => "image/webp",
        _ => return Err(wrong("it is no PNG, JPEG, GIF or WebP")),
    };
    Ok(Block::Image {
        media_type: media_type.to_owned(),
        data: STANDARD.encode(bytes),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Duration;

    use super::arrives;

    #[test]
    fn an_open_pipe_is_waited_for_only_so_long() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        assert!(!arrives(&reader, Duration::ZERO));
        writer.write_all(b"x").unwrap();
        assert!(arrives(&reader, Duration::ZERO));
    }

    #[test]
    fn the_end_of_a_pipe_and_files_are_there_at_once() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(writer);
        assert!(arrives(&reader, Duration::ZERO));
        let file = tempfile::tempfile().unwrap();
        assert!(arrives(&file, Duration::ZERO));
    }
}
