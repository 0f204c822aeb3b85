//! What people see: lists, content blocks, and summaries of what no terminal can show.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use cocode_client::{Annotations, Content, ResourceContents};

use crate::error::CliError;
use crate::printer::{Paint, Style};
use crate::text::{plain, size, wrap};

/// How wide the first column of a list may be.
const MAX_NAME_COLUMN: usize = 48;

/// Base64 as servers write it: padded or not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// One line of a list.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) text: String,
    /// Said at the end, less loudly.
    pub(crate) note: String,
}

/// A list with aligned texts, each wrapped to the width.
pub(crate) fn rows(rows: &[Row], width: usize, paint: Paint) -> String {
    let lengths = rows.iter().map(|row| row.name.chars().count());
    let column = lengths
        .filter(|length| *length <= MAX_NAME_COLUMN)
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for Row {
        name,
        text: body,
        note,
    } in rows
    {
        let name = plain(name);
        let note = plain(note);
        let words = match (body.is_empty(), note.is_empty()) {
            (_, true) => plain(body),
            (true, false) => note.clone(),
            (false, false) => format!("{}  {note}", plain(body)),
        };
        let padding = " ".repeat(column.saturating_sub(name.chars().count()) + 2);
        let mut lines = wrap(&words, width.saturating_sub(column + 2)).into_iter();
        let first = lines.next().unwrap_or_default();
        let name = paint.paint(Style::Bold, &name);
        text.push_str(format!("{name}{padding}{}", dim_note(&first, &note, paint)).trim_end());
        text.push('\n');
        for line in lines {
            let indent = " ".repeat(column + 2);
            text.push_str(format!("{indent}{}", dim_note(&line, &note, paint)).trim_end());
            text.push('\n');
        }
    }
    text
}

/// Dims the note where it stands whole at the end of a line.
fn dim_note(line: &str, note: &str, paint: Paint) -> String {
    match line.strip_suffix(note) {
        Some(before) if !note.is_empty() => format!("{before}{}", paint.paint(Style::Dim, note)),
        _ => line.to_owned(),
    }
}

/// The effects of a tool in few words.
pub(crate) fn marks(annotations: Annotations) -> String {
    let Annotations {
        read_only,
        destructive,
        idempotent,
        open_world,
    } = annotations;
    let marks: Vec<&str> = [
        (read_only, "read-only"),
        (
            destructive.filter(|_| read_only != Some(true)),
            "destructive",
        ),
        (idempotent, "idempotent"),
        (open_world, "open world"),
    ]
    .into_iter()
    .filter_map(|(hint, mark)| (hint == Some(true)).then_some(mark))
    .collect();
    if marks.is_empty() {
        String::new()
    } else {
        format!("[{}]", marks.join(", "))
    }
}

/// Where binary content goes.
#[derive(Debug)]
pub(crate) struct Saver {
    pub(crate) directory: PathBuf,
    /// The beginning of every file name.
    pub(crate) stem: String,
}

impl Saver {
    /// Saves what is binary in a content block. Gives the path of the file, nothing if there is
    /// nothing to save.
    pub(crate) fn save_content(&self, content: &Content) -> Result<Option<String>, CliError> {
        let (data, mime_type) = match content {
            Content::Image { data, mime_type } | Content::Audio { data, mime_type } => {
                (data, Some(mime_type.as_str()))
            }
            Content::Embedded(ResourceContents {
                blob: Some(blob),
                text: None,
                mime_type,
                ..
            }) => (blob, mime_type.as_deref()),
            _ => return Ok(None),
        };
        let bytes = decoded(data);
        let saved = bytes.map(|bytes| self.save(&bytes, mime_type));
        saved.transpose()
    }

    /// Writes a new file and gives its path. Nothing that exists is overwritten.
    fn save(&self, bytes: &[u8], mime_type: Option<&str>) -> Result<String, CliError> {
        let cannot = |path: &std::path::Path, error| CliError::file("write", path, &error);
        std::fs::create_dir_all(&self.directory).map_err(|error| cannot(&self.directory, error))?;
        let stem: String = self
            .stem
            .chars()
            .map(|letter| {
                if letter.is_ascii_alphanumeric() || letter == '-' {
                    letter
                } else {
                    '_'
                }
            })
            .take(64)
            .collect();
        let extension = extension(mime_type);
        let mut number = 1_u64;
        loop {
            let path = self.directory.join(format!("{stem}-{number}.{extension}"));
            match std::fs::File::create_new(&path) {
                Ok(mut file) => {
                    std::io::Write::write_all(&mut file, bytes)
                        .map_err(|error| cannot(&path, error))?;
                    return Ok(path.display().to_string());
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(cannot(&path, error)),
            }
        }
    }
}

/// A content block as text that ends its last line.
pub(crate) fn content(content: &Content, saver: Option<&Saver>) -> Result<String, CliError> {
    let text = match content {
        Content::Text(text) => text.clone(),
        Content::Image { data, mime_type } => binary("image", data, Some(mime_type), saver)?,
        Content::Audio { data, mime_type } => binary("audio", data, Some(mime_type), saver)?,
        Content::Link { uri, name, .. } if uri == name => plain(uri),
        Content::Link { uri, name, .. } => format!("{} ({})", plain(uri), plain(name)),
        Content::Embedded(contents) => resource(contents, saver)?,
        Content::Unknown { raw, .. } => raw.as_str().to_owned(),
        _ => "[content of an unknown kind]".to_owned(),
    };
    Ok(ended(text))
}

/// A resource as text, or what can be said about it.
fn resource(contents: &ResourceContents, saver: Option<&Saver>) -> Result<String, CliError> {
    let ResourceContents {
        uri,
        mime_type,
        text,
        blob,
    } = contents;
    match (text, blob) {
        (Some(text), _) => Ok(text.clone()),
        (None, Some(blob)) => {
            let name = format!("resource {}", plain(uri));
            binary(&name, blob, mime_type.as_deref(), saver)
        }
        (None, None) => Ok(format!("[resource {}, empty]", plain(uri))),
    }
}

/// Saves binary content and gives the path, or says what it is.
fn binary(
    name: &str,
    data: &str,
    mime_type: Option<&str>,
    saver: Option<&Saver>,
) -> Result<String, CliError> {
    let kind = mime_type
        .map(|mime_type| format!(" {}", plain(mime_type)))
        .unwrap_or_default();
    let Some(bytes) = decoded(data) else {
        return Ok(format!("[{name}{kind}, not valid base64]"));
    };
    match saver {
        Some(saver) => saver.save(&bytes, mime_type),
        None => Ok(format!("[{name}{kind}, {}]", size(bytes.len()))),
    }
}

/// The bytes of base64, blanks and line breaks allowed.
pub(crate) fn decoded(data: &str) -> Option<Vec<u8>> {
    if data.bytes().any(|byte| byte.is_ascii_whitespace()) {
        let data: String = data.split_ascii_whitespace().collect();
        return BASE64.decode(data).ok();
    }
    BASE64.decode(data).ok()
}

/// `text` with the end of its last line.
pub(crate) fn ended(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn extension(mime_type: Option<&str>) -> &'static str {
    let essence = mime_type
        .and_then(|kind| kind.split(';').next())
        .unwrap_or_default();
    match essence.trim().to_ascii_lowercase().as_str() {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/ogg" => "ogg",
        "audio/flac" => "flac",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "application/zip" => "zip",
        "application/gzip" => "gz",
        _ => "bin",
    }
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
