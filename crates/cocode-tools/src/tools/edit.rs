//! `edit`: an exact replacement in a file.

use std::borrow::Cow;
use std::io::Read as _;

use memchr::memmem;
use serde::Deserialize;
use serde_json::json;

use crate::confine::{Inside, Kept, Missing, Place, replace};
use crate::definition::ToolDefinition;
use crate::job::Job;
use crate::limits::{MAX_EDIT_BYTES, MAX_PLACES};
use crate::output::ToolOutput;
use crate::refusal::Refusal;
use crate::sandbox::Protection;
use crate::text::{count, shown};
use crate::tool::{Answer, Call, Shared, Tool};

pub(crate) struct Edit;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

impl Tool for Edit {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "edit",
            title: "Edit a file",
            description: "Replaces text in a file of the workspace. `old_string` must be in the \
                file exactly, with its white space, and exactly once; give more of its \
                surroundings to make it unique, or set `replace_all`. The file keeps its mode and \
                its line ends.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "The file, relative to the workspace or absolute within it."
                    },
                    "old_string": {
                        "type": "string",
                        "minLength": 1,
                        "description": "The text to replace."
                    },
                    "new_string": {
                        "type": "string",
                        "description": "The text to put there."
                    },
                    "replace_all": {
                        "type": "boolean",
                        "description": "Replace it wherever it is. Default: false."
                    }
                },
                "required": ["path", "old_string", "new_string"],
                "additionalProperties": false
            }),
            output_schema: Some(json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string" },
                    "replacements": { "type": "integer" }
                },
                "required": ["path", "replacements"]
            })),
            read_only: false,
            destructive: true,
            idempotent: false,
        }
    }

    fn run<'a>(&'a self, call: Call<'a>) -> Answer<'a> {
        Box::pin(async move {
            let arguments: Arguments = call.arguments()?;
            if arguments.old_string.is_empty() {
                return Err(call.wrong("`old_string` is empty; use `write` to make a file"));
            }
            if arguments.old_string == arguments.new_string {
                return Err(call.wrong("`old_string` and `new_string` are the same"));
            }
            let protection = call.sandbox.protection();
            call.on_file(move |shared, job| edit(shared, &arguments, protection, job))
                .await
        })
    }
}

fn edit(
    shared: &Shared,
    arguments: &Arguments,
    protection: Protection,
    job: &Job,
) -> Result<ToolOutput, Refusal> {
    let path = shared.root.inside(&arguments.path)?;
    let (place, _writing) = shared.change(&path, Missing::Refused, protection, job)?;
    let (kept, content) = existing(&place, &path)?;
    let (content, n_replacements) = replaced(&content, arguments, &path)?;
    if content.len() as u64 > MAX_EDIT_BYTES {
        return Err(too_large(&path));
    }
    replace(&place, &path, Some(&kept), &content, job)?;

    let real = place.path();
    let replacements = count(n_replacements as u64, "replacement", "replacements");
    Ok(ToolOutput::structured(
        format!("edited {} ({replacements})", shown(&real)),
        json!({ "path": real.to_string_lossy(), "replacements": n_replacements }),
    ))
}

/// The file at a place: what must be kept of it, and its content.
fn existing(place: &Place, path: &Inside) -> Result<(Kept, Vec<u8>), Refusal> {
    let missing = || Refusal::system("edit", path.shown(), rustix::io::Errno::NOENT);
    let kept = Kept::look(place, path)?.ok_or_else(missing)?;
    let opened = kept.open(place, path)?;
    let mut content = Vec::new();
    opened
        .take(MAX_EDIT_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(|error| Refusal::io("read", path.shown(), &error))?;
    if content.len() as u64 > MAX_EDIT_BYTES {
        return Err(too_large(path));
    }
    Ok((kept, content))
}

fn too_large(path: &Inside) -> Refusal {
    Refusal::new(format!(
        "`{}` is larger than {MAX_EDIT_BYTES} bytes, which is too large to edit",
        path.shown()
    ))
}

/// The new content, and how many places were changed.
fn replaced(
    content: &[u8],
    arguments: &Arguments,
    path: &Inside,
) -> Result<(Vec<u8>, usize), Refusal> {
    let (old, new) = in_line_ends_of(content, arguments);
    let places: Vec<usize> = memmem::find_iter(content, old.as_bytes()).collect();
    if places.is_empty() {
        return Err(not_found(content, &old, path));
    }
    if places.len() > 1 && !arguments.replace_all {
        return Err(ambiguous(content, &places, path));
    }
    let mut result = Vec::with_capacity(content.len());
    let mut rest = 0;
    for place in &places {
        result.extend_from_slice(content.get(rest..*place).unwrap_or_default());
        result.extend_from_slice(new.as_bytes());
        rest = place + old.len();
        if result.len() as u64 > MAX_EDIT_BYTES {
            return Err(too_large(path));
        }
    }
    result.extend_from_slice(content.get(rest..).unwrap_or_default());
    Ok((result, places.len()))
}

/// `read` shows lines without their ends, so a caller cannot know that they are CRLF: where the
/// text is not there as it was given, but is with the file's own line ends, those are meant.
fn in_line_ends_of<'a>(content: &[u8], arguments: &'a Arguments) -> (Cow<'a, str>, Cow<'a, str>) {
    let Arguments {
        old_string,
        new_string,
        ..
    } = arguments;
    let as_given = (Cow::from(old_string), Cow::from(new_string));
    if !old_string.contains('\n') && !new_string.contains('\n') || old_string.contains('\r') {
        return as_given;
    }
    let uses_crlf = memmem::find(content, b"\r\n").is_some()
        && memchr::memchr_iter(b'\n', content)
            .all(|newline| newline > 0 && content.get(newline - 1) == Some(&b'\r'));
    if !uses_crlf {
        return as_given;
    }
    let crlf = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
    (crlf(old_string).into(), crlf(new_string).into())
}

fn not_found(content: &[u8], old: &str, path: &Inside) -> Refusal {
    let shown = path.shown();
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_near = squeezed(&String::from_utf8_lossy(content)).contains(&squeezed(old));
    Refusal::new(if is_near {
        format!(
            "`old_string` is in `{shown}` only with other white space; read the file again and \
             give it exactly"
        )
    } else {
        format!("`old_string` is not in `{shown}`")
    })
}

fn ambiguous(content: &[u8], places: &[usize], path: &Inside) -> Refusal {
    let lines: Vec<String> = places
        .iter()
        .take(MAX_PLACES)
        .map(|place| {
            let before = content.get(..*place).unwrap_or_default();
            (memchr::memchr_iter(b'\n', before).count() + 1).to_string()
        })
        .collect();
    let more = if places.len() > MAX_PLACES {
        ", …"
    } else {
        ""
    };
    Refusal::new(format!(
        "`old_string` is {} times in `{}`, at lines {}{more}; give more of its surroundings, or \
         set `replace_all`",
        places.len(),
        path.shown(),
        lines.join(", ")
    ))
}
