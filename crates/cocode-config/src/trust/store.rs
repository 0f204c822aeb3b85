//! The file of decisions, as JSON.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Approval, Decisions, MAX_TRUST_BYTES, Record};
use crate::entry::{EntryLine, Text};
use crate::problem::{Origin, Problem};
use crate::read;

const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStore {
    version: u32,
    items: Vec<RawItem>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawItem {
    file: String,
    name: String,
    how: RawHow,
    hash: String,
    when: u64,
    lines: Vec<RawLine>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawHow {
    Approved,
    Written,
    Refused,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLine {
    key: String,
    /// As JSON, or a hash of it.
    value: String,
    /// What of the value may be shown, if it may be secret: the value is a hash then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shown: Option<String>,
}

/// What is in the file; nothing, if there is none.
pub(super) fn read(path: &Path) -> Result<BTreeMap<(PathBuf, String), Decisions>, Box<Problem>> {
    let broken = |message: String| {
        let problem = Problem::error(Origin::file(path), message);
        Box::new(problem.hint("remove the file, and approve again what you trust"))
    };
    let Some(text) = read::text(path, MAX_TRUST_BYTES)? else {
        return Ok(BTreeMap::new());
    };
    let metadata = std::fs::metadata(path)
        .map_err(|error| broken(format!("cannot inspect the file: {error}")))?;
    if metadata.permissions().mode() & 0o022 != 0 {
        let message = "others may write this file, so it proves nothing";
        let problem = Problem::error(Origin::file(path), message);
        let hint = "look through it with `cocode mcp trust --list`, then make it yours alone";
        return Err(Box::new(problem.hint(hint)));
    }
    let raw: RawStore = serde_json::from_str(&text).map_err(|error| {
        let line = u32::try_from(error.line()).unwrap_or(u32::MAX);
        let mut problem = broken("this is not a list of approvals that we wrote".to_owned());
        problem.origin = problem.origin.at(line.max(1));
        problem
    })?;
    if raw.version != VERSION {
        let version = raw.version;
        return Err(broken(format!(
            "another cocode wrote it, in version {version}"
        )));
    }
    let mut items: BTreeMap<_, Decisions> = BTreeMap::new();
    for item in raw.items {
        let RawItem {
            file,
            name,
            how,
            hash,
            when,
            lines,
        } = item;
        let lines = lines.into_iter().map(RawLine::read).collect();
        let record = Record { hash, lines, when };
        let decisions = items.entry((PathBuf::from(file), name)).or_default();
        match how {
            RawHow::Approved => decisions.approved = Some((Approval::Approved, record)),
            RawHow::Written => decisions.approved = Some((Approval::Written, record)),
            RawHow::Refused => decisions.refused = Some(record),
        }
    }
    Ok(items)
}

/// The text of the file.
pub(super) fn text(items: &BTreeMap<(PathBuf, String), Decisions>) -> String {
    let items = items.iter().flat_map(|((file, name), decisions)| {
        let Decisions { approved, refused } = decisions;
        let approved = approved.iter().map(|(approval, record)| {
            let how = match approval {
                Approval::Approved => RawHow::Approved,
                Approval::Written => RawHow::Written,
            };
            (how, record)
        });
        let refused = refused.iter().map(|record| (RawHow::Refused, record));
        approved.chain(refused).map(|(how, record)| RawItem {
            file: file.to_string_lossy().into_owned(),
            name: name.clone(),
            how,
            hash: record.hash.clone(),
            when: record.when,
            lines: record.lines.iter().map(RawLine::write).collect(),
        })
    });
    let store = RawStore {
        version: VERSION,
        items: items.collect(),
    };
    let value = serde_json::json!(store);
    format!("{value:#}\n")
}

impl RawLine {
    fn read(self) -> EntryLine {
        let Self { key, value, shown } = self;
        EntryLine {
            key,
            is_secret: shown.is_some(),
            masked: shown.unwrap_or_else(|| value.clone()),
            value: Text(value),
        }
    }

    fn write(line: &EntryLine) -> Self {
        Self {
            key: line.key.clone(),
            value: line.value.0.clone(),
            shown: line.is_secret.then(|| line.masked.clone()),
        }
    }
}
