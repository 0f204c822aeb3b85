//! Tools as a provider of models takes them, with what was changed and what cannot be given.

use std::collections::BTreeSet;

use cocode_client::{Annotations, Listing, Quarantined, Tool};
use cocode_core::{
    Dialect, NameTable, ProviderTool, ServerName, ToolName, ToolSource, Unrepairable, convert,
};
use serde::Serialize;
use serde_json::Value;

use crate::error::{CliError, Code};
use crate::gate::Gate;
use crate::printer::{Printer, print_json};
use crate::text::plain;

/// So many changes of one tool among many are told to people.
const MAX_NOTES_SHOWN: usize = 3;

/// The tools of one server.
#[derive(Debug)]
pub(super) struct Definitions {
    dialect: Dialect,
    tools: Vec<Defined>,
    left_out: Vec<LeftOut>,
    /// Why the list may have no end.
    incomplete: Option<String>,
    /// One tool was asked for.
    is_one: bool,
}

#[derive(Debug)]
struct Defined {
    /// The server's name for it.
    tool: String,
    written: ProviderTool,
    /// Why it is not strict, where that is wanted.
    not_strict: Option<String>,
}

/// A tool that cannot be given to the provider.
#[derive(Debug, Serialize)]
struct LeftOut {
    tool: Option<String>,
    reason: String,
}

/// All that is to be known, for scripts.
#[derive(Debug, Serialize)]
pub(super) struct Details<'a> {
    provider: &'static str,
    tools: Vec<ToolDetails<'a>>,
    quarantined: &'a [LeftOut],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolDetails<'a> {
    tool: &'a str,
    definition: Value,
    notes: Vec<NoteDetails<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_strict: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct NoteDetails<'a> {
    place: &'a str,
    change: String,
}

impl Definitions {
    /// Writes all tools of a list. Those of a server without a name keep theirs.
    pub(super) fn of(
        listing: &Listing<Tool>,
        server: Option<&ServerName>,
        gate: &Gate,
        dialect: Dialect,
    ) -> Self {
        // What is filtered out is missed by nobody.
        let is_missed = |one: &&Quarantined| {
            let name = one.name.as_ref();
            name.is_none_or(|name| gate.shows(name, Annotations::default()))
        };
        let unusable = listing.quarantined.iter().filter(is_missed);
        let mut definitions = Self {
            dialect,
            tools: Vec::new(),
            left_out: unusable.map(LeftOut::from).collect(),
            incomplete: listing.incomplete.as_ref().map(ToString::to_string),
            is_one: false,
        };
        definitions.write(&listing.items, server);
        definitions
    }

    /// Writes one tool.
    pub(super) fn one(tool: &Tool, server: Option<&ServerName>, dialect: Dialect) -> Self {
        let mut definitions = Self {
            dialect,
            tools: Vec::new(),
            left_out: Vec::new(),
            incomplete: None,
            is_one: true,
        };
        definitions.write(std::slice::from_ref(tool), server);
        definitions
    }

    fn write(&mut self, tools: &[Tool], server: Option<&ServerName>) {
        let pairs = server.into_iter().flat_map(|server| {
            let own = tools.iter().map(|tool| ToolName::new(tool.name.as_str()));
            own.map(|tool| (server.clone(), tool))
        });
        let names = NameTable::build(pairs);
        let mut taken = BTreeSet::new();
        for tool in tools {
            let own = ToolName::new(tool.name.as_str());
            let seen = server.and_then(|server| names.name_of(server, &own));
            let name = seen.map_or(tool.name.as_str(), |name| name.as_str());
            let defined = Defined::new(tool, name, self.dialect);
            match defined {
                // A provider refuses a request in which a name comes twice.
                Ok(defined) if !taken.insert(defined.written.name.clone()) => {
                    let reason = "its server lists another one of this name before it".to_owned();
                    self.leave_out(tool, reason);
                }
                Ok(defined) => self.tools.push(defined),
                Err(reason) => self.leave_out(tool, reason),
            }
        }
    }

    fn leave_out(&mut self, tool: &Tool, reason: String) {
        let tool = Some(tool.name.clone());
        self.left_out.push(LeftOut { tool, reason });
    }

    /// Prints them, and is an error if a tool is missing.
    pub(super) fn print(&self, printer: &Printer) -> Result<(), CliError> {
        if let (true, [left_out]) = (self.is_one, self.left_out.as_slice()) {
            let LeftOut { tool, reason } = left_out;
            let tool = plain(tool.as_deref().unwrap_or_default());
            let message = format!("the tool `{tool}` cannot be given to {}", self.dialect);
            let mut error = CliError::new(Code::UnusableTool, message);
            error.causes.push(plain(reason));
            return Err(error);
        }
        self.tell(None, printer);
        if printer.json() {
            print_json(printer, &self.details())?;
        } else {
            print_all([self], printer)?;
        }
        check([self])
    }

    /// Tells people what was changed, and what cannot be given.
    pub(super) fn tell(&self, server: Option<&str>, printer: &Printer) {
        let of = server.map(|server| format!("server `{server}`: "));
        let of = of.unwrap_or_default();
        if let Some(reason) = &self.incomplete {
            printer.warn(&format!("{of}the list is not complete: {reason}"));
        }
        if printer.json() {
            return;
        }
        for left_out in &self.left_out {
            let LeftOut { tool, reason } = left_out;
            let tool = tool.as_ref().map(|tool| format!(" `{}`", plain(tool)));
            let (tool, dialect) = (tool.unwrap_or_default(), self.dialect);
            printer.warn(&format!(
                "{of}the tool{tool} cannot be given to {dialect}: {reason}"
            ));
        }
        for defined in &self.tools {
            let (name, notes) = (&defined.written.name, defined.notes());
            let n_shown = if self.is_one {
                notes.len()
            } else {
                MAX_NOTES_SHOWN
            };
            let more = notes.len().saturating_sub(n_shown);
            let more = (more > 0).then(|| format!("and {more} more"));
            let shown: Vec<String> = notes.into_iter().take(n_shown).chain(more).collect();
            if !shown.is_empty() {
                printer.note(&format!("{name}: {}", shown.join("; ")));
            }
        }
    }

    pub(super) fn details(&self) -> Details<'_> {
        Details {
            provider: self.dialect.as_str(),
            tools: self.tools.iter().map(Defined::details).collect(),
            quarantined: &self.left_out,
        }
    }
}

/// Prints the definitions of all servers as one list, each on a line.
pub(super) fn print_all<'a>(
    all: impl IntoIterator<Item = &'a Definitions>,
    printer: &Printer,
) -> Result<(), CliError> {
    let tools = all.into_iter().flat_map(|one| &one.tools);
    let lines: Vec<String> = tools
        .map(|tool| tool.written.definition().to_string())
        .collect();
    if lines.is_empty() {
        return printer.out_line("[]");
    }
    let list = format!("[\n{}\n]\n", lines.join(",\n"));
    printer.out(printer.for_stdout(list))
}

/// An error if a tool is missing.
pub(super) fn check<'a>(all: impl IntoIterator<Item = &'a Definitions>) -> Result<(), CliError> {
    let (mut n_all, mut n_left_out, mut dialect) = (0, 0, "");
    for one in all {
        n_all += one.tools.len() + one.left_out.len();
        n_left_out += one.left_out.len();
        dialect = one.dialect.as_str();
    }
    if n_left_out == 0 {
        return Ok(());
    }
    let message = format!("{n_left_out} of {n_all} tools cannot be given to {dialect}");
    Err(CliError::new(Code::UnusableTool, message)
        .hint("the others are printed; leave these out by `disabled_tools`"))
}

impl Defined {
    fn new(tool: &Tool, name: &str, dialect: Dialect) -> Result<Self, String> {
        let schema: Value = tool.input_schema.decode().map_err(|error| {
            let error: serde_json::Error = error;
            format!("its inputSchema cannot be read: {error}")
        })?;
        let source = ToolSource {
            name,
            description: tool.description.as_deref().or(tool.title.as_deref()),
            input_schema: &schema,
        };
        let (written, not_strict) = match convert(&source, dialect) {
            Err(error @ Unrepairable::NotStrict { .. }) => {
                let written = convert(&source, Dialect::OpenAi);
                (written, Some(error.to_string()))
            }
            written => (written, None),
        };
        Ok(Self {
            tool: tool.name.clone(),
            written: written.map_err(|error| error.to_string())?,
            not_strict,
        })
    }

    /// What is to be known about it, in words.
    fn notes(&self) -> Vec<String> {
        let notes = self.written.notes.iter().map(ToString::to_string);
        self.not_strict.clone().into_iter().chain(notes).collect()
    }

    fn details(&self) -> ToolDetails<'_> {
        let notes = self.written.notes.iter().map(|note| NoteDetails {
            place: &note.place,
            change: note.what.to_string(),
        });
        ToolDetails {
            tool: &self.tool,
            definition: self.written.definition(),
            notes: notes.collect(),
            not_strict: self.not_strict.as_deref(),
        }
    }
}

impl From<&Quarantined> for LeftOut {
    fn from(quarantined: &Quarantined) -> Self {
        Self {
            tool: quarantined.name.clone(),
            reason: quarantined.reason.clone(),
        }
    }
}
