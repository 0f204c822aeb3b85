//! What was written down of calls through gateways: shown, and checked for whether it is still what was
//! written.

use cocode_access::{AuditError, AuditHead, AuditLedger, AuditLine, Finding, VerifyReport};
use serde::{Deserialize, Serialize};

use crate::access::audit_ledger;
use crate::args::access::AuditVerb;
use crate::error::{CliError, Code, Exit};
use crate::printer::{Style, print_json};
use crate::session::on_runtime;
use crate::table::{Cell, table};
use crate::text::plain;
use crate::workspace::Workspace;

/// Entries that are looked at where only some of them are wanted: as many as a log gives at once.
const MAX_LOOKED_AT: usize = 1000;

pub(crate) fn run(verb: &AuditVerb, workspace: &Workspace) -> Result<Exit, CliError> {
    let work = async {
        match verb {
            AuditVerb::Show {
                limit,
                principal,
                server,
                directory,
            } => {
                let wanted = Wanted {
                    limit: usize::try_from(*limit).unwrap_or(usize::MAX),
                    principal: principal.as_deref(),
                    server: server.as_deref(),
                };
                let ledger = audit_ledger(directory.as_deref(), workspace).await?;
                show(&*ledger, wanted, workspace).await
            }
            AuditVerb::Verify { directory, expect } => {
                let expected = expect.as_deref().map(head).transpose()?;
                let ledger = audit_ledger(directory.as_deref(), workspace).await?;
                verify(&*ledger, expected, workspace).await
            }
        }
    };
    on_runtime(workspace, work)
}

/// Which entries are wanted.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    limit: usize,
    principal: Option<&'a str>,
    server: Option<&'a str>,
}

impl Wanted<'_> {
    fn is_all(self) -> bool {
        self.principal.is_none() && self.server.is_none()
    }

    fn has(self, entry: &Shown) -> bool {
        let is = |wanted: Option<&str>, found: &Option<String>| {
            wanted.is_none_or(|wanted| found.as_deref() == Some(wanted))
        };
        is(self.principal, &entry.principal) && is(self.server, &entry.server)
    }
}

/// What is shown of an entry.
#[derive(Deserialize)]
struct Shown {
    seq: u64,
    at: String,
    principal: Option<String>,
    method: String,
    server: Option<String>,
    name: Option<String>,
    outcome: String,
    milliseconds: u64,
    /// How many it stands for, if several.
    #[serde(default)]
    times: Option<u64>,
}

async fn show(
    ledger: &dyn AuditLedger,
    wanted: Wanted<'_>,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let most = if wanted.is_all() {
        wanted.limit
    } else {
        MAX_LOOKED_AT.max(wanted.limit)
    };
    let lines = ledger.recent(most).await.map_err(|error| trouble(&error))?;
    let n_looked_at = lines.len();
    let mut entries: Vec<(AuditLine, Shown)> = lines
        .into_iter()
        .filter_map(|line| {
            let shown: Shown = serde_json::from_str(line.text()).ok()?;
            wanted.has(&shown).then_some((line, shown))
        })
        .take(wanted.limit)
        .collect();
    entries.reverse();
    let printer = &workspace.printer;
    if printer.json() {
        for (line, _) in &entries {
            printer.out_line(line.text())?;
        }
        return Ok(Exit::Ok);
    }
    if !wanted.is_all() && n_looked_at == most && entries.len() < wanted.limit {
        printer.note(&format!(
            "only the last {n_looked_at} entries were looked at"
        ));
    }
    if entries.is_empty() {
        printer.note("nothing was written down");
        return Ok(Exit::Ok);
    }
    let rows: Vec<Vec<Cell>> = entries.iter().map(|(_, shown)| row(shown)).collect();
    let head = ["ENTRY", "WHEN", "WHO", "WHAT", "OF", "OUTCOME", "TOOK"];
    printer.out(table(&head, &rows, printer.paint()))?;
    Ok(Exit::Ok)
}

fn row(shown: &Shown) -> Vec<Cell> {
    let text = |text: &Option<String>| plain(text.as_deref().unwrap_or("-"));
    let what = match &shown.name {
        Some(name) => format!("{} {}", shown.method, name),
        None => shown.method.clone(),
    };
    let outcome = match shown.times {
        Some(times) => format!("{} {times} times", shown.outcome),
        None => shown.outcome.clone(),
    };
    let outcome = Cell::new(plain(&outcome));
    vec![
        Cell::new(shown.seq.to_string()),
        Cell::new(plain(&shown.at)),
        Cell::new(text(&shown.principal)).styled(Style::Bold),
        Cell::new(plain(&what)),
        Cell::new(text(&shown.server)),
        if shown.outcome == "ok" {
            outcome
        } else {
            outcome.styled(Style::Yellow)
        },
        Cell::new(format!("{} ms", shown.milliseconds)),
    ]
}

/// What checking comes to, for scripts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checked {
    intact: bool,
    files: u64,
    entries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<Head>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Head>,
    problems: Vec<String>,
    /// Problems that are not listed.
    more_problems: u64,
    notes: Vec<String>,
}

/// The number and the hash of an entry.
#[derive(Serialize)]
struct Head {
    entry: u64,
    hash: String,
}

impl From<AuditHead> for Head {
    fn from(head: AuditHead) -> Self {
        Self {
            entry: head.seq,
            hash: head.hash.to_string(),
        }
    }
}

async fn verify(
    ledger: &dyn AuditLedger,
    expected: Option<AuditHead>,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let report = ledger.verify(expected).await;
    let report = report.map_err(|error| trouble(&error))?;
    let printer = &workspace.printer;
    if printer.json() {
        print_json(printer, &checked(&report))?;
    } else {
        for note in &report.notes {
            printer.note(&note.to_string());
        }
        for problem in &report.problems {
            printer.out_line(&plain(&problem.to_string()))?;
        }
        if report.n_more_problems > 0 {
            printer.out_line(&format!("and {} more", report.n_more_problems))?;
        }
    }
    if !report.is_intact() {
        let n_problems = u64::try_from(report.problems.len()).unwrap_or(u64::MAX);
        let n_problems = n_problems.saturating_add(report.n_more_problems);
        let message = format!(
            "the audit log is not what was written: {}",
            counted(n_problems, "problem")
        );
        let is_old = |problem: &Finding| matches!(problem, Finding::TooOld { .. });
        let (message, hint) = if report.problems.iter().all(is_old) {
            let message = "the audit log does not reach back to the entry that is expected";
            (message.to_owned(), "expect one that is still there")
        } else {
            (
                message,
                "keep the files as they are, and compare them with a copy",
            )
        };
        return Err(CliError::new(Code::AuditBroken, message).hint(hint));
    }
    if !printer.json() {
        let entries = counted(report.n_lines, "entry");
        let files = counted(report.n_files, "file");
        printer.out_line(&format!("intact: {entries} in {files}"))?;
        if let Some(AuditHead { seq, hash }) = report.last {
            printer.note(&format!(
                "keep this elsewhere, so that nobody can write all of it anew: --expect {seq}:{hash}"
            ));
        }
    }
    Ok(Exit::Ok)
}

fn checked(report: &VerifyReport) -> Checked {
    let told = |findings: &[Finding]| findings.iter().map(ToString::to_string).collect();
    Checked {
        intact: report.is_intact(),
        files: report.n_files,
        entries: report.n_lines,
        first: report.first.map(Head::from),
        last: report.last.map(Head::from),
        problems: told(&report.problems),
        more_problems: report.n_more_problems,
        notes: told(&report.notes),
    }
}

fn counted(number: u64, what: &str) -> String {
    match (number, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {what}s"),
    }
}

/// `120:1f0c…`.
fn head(text: &str) -> Result<AuditHead, CliError> {
    let bad = || {
        let message = format!("`{}` names no entry of the log", plain(text));
        CliError::new(Code::InvalidUsage, message)
            .hint("write its number and its hash, as `cocode audit verify` prints them: 120:1f0c…")
    };
    let (seq, hash) = text.split_once(':').ok_or_else(bad)?;
    let seq = seq.parse().map_err(|_bad| bad())?;
    let hash = hash.parse().map_err(|_bad| bad())?;
    Ok(AuditHead { seq, hash })
}

fn trouble(error: &AuditError) -> CliError {
    CliError::new(Code::FileError, "the audit log cannot be read").because(error)
}
