//! `read`: lines of a text file, or an image.

use std::io::{self, BufRead, BufReader, Read as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;

use super::with_notes;
use crate::confine::Inside;
use crate::definition::ToolDefinition;
use crate::job::Job;
use crate::limits::{
    CHUNK_BYTES, DEFAULT_READ_LINES, MAX_IMAGE_BYTES, MAX_LINE_BYTES, MAX_READ_BYTES,
    MAX_READ_COUNT_BYTES, MAX_READ_LINES, MAX_READ_SCAN_BYTES, SNIFF_BYTES,
};
use crate::output::{Block, ToolOutput};
use crate::refusal::Refusal;
use crate::text::{self, count, is_binary};
use crate::tool::{Answer, Call, Shared, Tool};

pub(crate) struct Read;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
    #[serde(default)]
    line_numbers: bool,
}

impl Tool for Read {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "read",
            title: "Read a file",
            description: "Reads a file of the workspace. Text is given by lines; a long file is \
                given in parts, and a note in brackets at the end says where to go on. Images \
                (PNG, JPEG, GIF, WebP) are shown. Other binary files are not.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "The file, relative to the workspace or absolute within it."
                    },
                    "offset": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "The first line to give, counted from 1. Default: 1."
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_READ_LINES,
                        "description": format!("At most so many lines. Default: {DEFAULT_READ_LINES}.")
                    },
                    "line_numbers": {
                        "type": "boolean",
                        "description": "Put its number and a tab before each line. Default: false."
                    }
                },
                "required": ["path"],
                "additionalProperties": false
            }),
            output_schema: None,
            read_only: true,
            destructive: false,
            idempotent: true,
        }
    }

    fn run<'a>(&'a self, call: Call<'a>) -> Answer<'a> {
        Box::pin(async move {
            let arguments = call.arguments()?;
            call.on_file(move |shared, job| read(shared, &arguments, job))
                .await
        })
    }
}

fn read(shared: &Shared, arguments: &Arguments, job: &Job) -> Result<ToolOutput, Refusal> {
    let path = shared.root.inside(&arguments.path)?;
    let opened = shared.root.open_file(&path)?;
    let size = opened.size();
    let mut reader = BufReader::with_capacity(CHUNK_BYTES, opened.file);
    let failed = |error| Refusal::io("read", path.shown(), &error);

    let beginning = reader.fill_buf().map_err(failed)?;
    let beginning = beginning.get(..SNIFF_BYTES).unwrap_or(beginning);
    if let Some(mime) = image_type(beginning) {
        return image(&path, reader, mime);
    }
    if is_binary(beginning) {
        return Err(Refusal::new(format!(
            "`{}` is a binary file of {size} bytes and is not shown",
            path.shown()
        )));
    }
    let mut lines = Lines::new(arguments);
    lines.read(&mut reader, job, &failed)?;
    lines.output(&path)
}

/// The media type of an image, by its first bytes.
fn image_type(beginning: &[u8]) -> Option<&'static str> {
    if beginning.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if beginning.starts_with(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if beginning.starts_with(b"GIF87a") || beginning.starts_with(b"GIF89a") {
        Some("image/gif")
    } else if beginning.starts_with(b"RIFF") && beginning.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else {
        None
    }
}

fn image(path: &Inside, reader: impl io::Read, mime: &'static str) -> Result<ToolOutput, Refusal> {
    let mut content = Vec::new();
    // The size that was reported is not relied on: the file may grow.
    reader
        .take(MAX_IMAGE_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(|error| Refusal::io("read", path.shown(), &error))?;
    if content.len() as u64 > MAX_IMAGE_BYTES {
        return Err(Refusal::new(format!(
            "`{}` is an image ({mime}) of more than {MAX_IMAGE_BYTES} bytes and is not shown",
            path.shown()
        )));
    }
    Ok(ToolOutput {
        content: vec![Block::Image {
            data_base64: STANDARD.encode(&content),
            mime,
        }],
        structured: None,
        is_error: false,
        denial: None,
        changes: None,
    })
}

/// A window of lines, taken from a stream that may be long, with lines that may be long.
struct Lines {
    first: u64,
    limit: u64,
    numbered: bool,
    text: String,
    /// The line that is being read, counted from 1.
    number: u64,
    /// As much of it as can be shown, and a little more.
    line: Vec<u8>,
    /// Something of it has been read.
    has_begun: bool,
    n_shown: u64,
    n_cut: u64,
    has_invalid: bool,
    n_scanned: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Lines are still wanted.
    Reading,
    /// There are as many as were asked for, or as fit.
    Full,
    /// The end of the file was seen, so the number of lines is known.
    Ended,
}

impl Lines {
    fn new(arguments: &Arguments) -> Self {
        Self {
            first: arguments.offset.unwrap_or(1).max(1),
            limit: arguments
                .limit
                .unwrap_or(DEFAULT_READ_LINES)
                .clamp(1, MAX_READ_LINES),
            numbered: arguments.line_numbers,
            text: String::new(),
            number: 1,
            line: Vec::new(),
            has_begun: false,
            n_shown: 0,
            n_cut: 0,
            has_invalid: false,
            n_scanned: 0,
            state: State::Reading,
        }
    }

    fn read(
        &mut self,
        reader: &mut impl BufRead,
        job: &Job,
        failed: &dyn Fn(io::Error) -> Refusal,
    ) -> Result<(), Refusal> {
        loop {
            job.check()?;
            let limit = match self.state {
                State::Reading => MAX_READ_SCAN_BYTES,
                State::Full | State::Ended => MAX_READ_COUNT_BYTES,
            };
            if self.n_scanned > limit {
                return Ok(());
            }
            let chunk = reader.fill_buf().map_err(failed)?;
            if chunk.is_empty() {
                if self.has_begun {
                    self.end_line();
                }
                self.state = State::Ended;
                return Ok(());
            }
            for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
                self.piece(piece);
            }
            let length = chunk.len();
            self.n_scanned += length as u64;
            reader.consume(length);
        }
    }

    fn piece(&mut self, piece: &[u8]) {
        self.has_begun = true;
        if self.is_wanted() {
            // Enough to see that it is too long, whatever its end is.
            let room = (MAX_LINE_BYTES + 8).saturating_sub(self.line.len());
            self.line.extend(piece.iter().take(room));
        }
        if piece.ends_with(b"\n") {
            self.end_line();
        }
    }

    fn is_wanted(&self) -> bool {
        self.state == State::Reading && self.number >= self.first
    }

    fn end_line(&mut self) {
        if self.is_wanted() {
            self.show_line();
        }
        if self.is_wanted() && self.n_shown >= self.limit {
            self.state = State::Full;
        }
        self.line.clear();
        self.has_begun = false;
        self.number += 1;
    }

    fn show_line(&mut self) {
        let (line, was_cut) = text::line(&self.line, 0);
        if self.text.len() + line.len() > MAX_READ_BYTES {
            self.state = State::Full;
            return;
        }
        self.n_cut += u64::from(was_cut);
        self.has_invalid |= !was_cut && line.contains('\u{fffd}');
        if self.numbered {
            let number = format!("{:>6}\t", self.number);
            self.text.push_str(&number);
        }
        self.text.push_str(&line);
        self.text.push('\n');
        self.n_shown += 1;
    }

    fn output(self, path: &Inside) -> Result<ToolOutput, Refusal> {
        let n_lines = self.number - 1;
        let is_known = self.state == State::Ended;
        let total = if is_known {
            format!("of {n_lines}")
        } else {
            "of a long file".to_owned()
        };
        let mut notes = Vec::new();
        if self.n_shown == 0 {
            if is_known && n_lines == 0 {
                notes.push("the file is empty".to_owned());
            } else if is_known {
                let lines = count(n_lines, "line", "lines");
                return Err(Refusal::new(format!(
                    "`{}` has only {lines}; there is no line {}",
                    path.shown(),
                    self.first
                )));
            } else {
                return Err(Refusal::new(format!(
                    "line {} of `{}` is more than {MAX_READ_SCAN_BYTES} bytes into the file and \
                     cannot be reached",
                    self.first,
                    path.shown(),
                )));
            }
        } else {
            let last = self.first + self.n_shown - 1;
            let is_all = is_known && last == n_lines;
            if !is_all {
                let next = last + 1;
                notes.push(format!(
                    "lines {} to {last} {total}; go on with offset {next}",
                    self.first
                ));
            } else if self.first > 1 {
                notes.push(format!("lines {} to {last} {total}", self.first));
            }
        }
        if self.n_cut > 0 {
            let lines = count(self.n_cut, "line", "lines");
            notes.push(format!("{lines} cut after {MAX_LINE_BYTES} bytes"));
        }
        if self.has_invalid {
            notes.push("what is not UTF-8 is shown as \u{fffd}".to_owned());
        }
        Ok(ToolOutput::text(with_notes(self.text, &notes)))
    }
}
