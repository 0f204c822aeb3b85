//! What one server lists, after filters and rules.

use cocode_client::{ListKind, Listing, Prompt, RawJson, Resource, ResourceTemplate, Tool};
use cocode_core::{Dialect, ServerName};

use crate::gate::Gate;
use crate::printer::Printer;
use crate::render::Row;
use crate::verbs::definitions::Definitions;
use crate::verbs::listing::{quarantined_row, warnings};
use crate::verbs::{prompts, resources, tools};

/// What one server lists, after filters and rules.
pub(super) struct Listed {
    rows: Vec<Row>,
    /// The items as the server sent them.
    pub(super) raw: Vec<RawJson>,
    warnings: Vec<String>,
    /// Tools as a provider takes them, if that is wanted.
    pub(super) definitions: Option<Definitions>,
    hidden: usize,
    /// How old the list is in words, and in seconds, if nobody was asked for it.
    pub(super) age: Option<(String, u64)>,
}

impl Listed {
    pub(super) fn none() -> Self {
        Self {
            rows: Vec::new(),
            raw: Vec::new(),
            warnings: Vec::new(),
            definitions: None,
            hidden: 0,
            age: None,
        }
    }

    fn of<T>(
        listing: &Listing<T>,
        kind: &str,
        row_of: impl Fn(&T) -> Row,
        raw_of: impl Fn(&T) -> RawJson,
    ) -> Self {
        let usable = listing.items.iter().map(row_of);
        Self {
            rows: usable
                .chain(listing.quarantined.iter().map(quarantined_row))
                .collect(),
            raw: listing.items.iter().map(raw_of).collect(),
            warnings: warnings(kind, listing),
            ..Self::none()
        }
    }

    pub(super) fn tools(
        mut listing: Listing<Tool>,
        gate: &Gate,
        (server, dialect): (&ServerName, Option<Dialect>),
        printer: &Printer,
    ) -> Self {
        let all = listing.items.len();
        listing
            .items
            .retain(|tool| gate.shows(&tool.name, tool.annotations));
        let hidden = all - listing.items.len();
        let row = |tool: &Tool| tools::row_of(tool, printer);
        let written = dialect.map(|dialect| Definitions::of(&listing, Some(server), gate, dialect));
        Self {
            hidden,
            definitions: written,
            ..Self::of(&listing, "tool", row, |tool| tool.raw.clone())
        }
    }

    pub(super) fn resources(listing: &Listing<Resource>) -> Self {
        let raw = |one: &Resource| one.raw.clone();
        Self::of(listing, "resource", resources::row_of, raw)
    }

    pub(super) fn templates(listing: &Listing<ResourceTemplate>) -> Self {
        let raw = |one: &ResourceTemplate| one.raw.clone();
        Self::of(
            listing,
            "resource template",
            resources::row_of_template,
            raw,
        )
    }

    pub(super) fn prompts(listing: &Listing<Prompt>) -> Self {
        let raw = |one: &Prompt| one.raw.clone();
        Self::of(listing, "prompt", prompts::row_of, raw)
    }

    /// Says what is to be known about the list.
    pub(super) fn tell(&self, server: &str, what: &str, printer: &Printer) {
        match &self.definitions {
            Some(definitions) => definitions.tell(Some(server), printer),
            None => {
                for warning in &self.warnings {
                    printer.warn(&format!("server `{server}`: {warning}"));
                }
            }
        }
        if let Some((age, _)) = &self.age {
            printer.note(&format!("server `{server}`: as it was listed {age} ago"));
        }
        if self.hidden > 0 {
            let (hidden, all) = (self.hidden, self.hidden + self.raw.len());
            printer.note(&format!(
                "server `{server}`: {hidden} of {all} {what} are hidden by filters or rules"
            ));
        }
    }

    /// The rows, each with the name by which it can be used.
    pub(super) fn named(&self, server: &str, kind: ListKind) -> impl Iterator<Item = Row> {
        let named = |row: &Row| Row {
            name: match kind {
                ListKind::Tools | ListKind::Prompts => format!("{server}.{}", row.name),
                ListKind::Resources | ListKind::ResourceTemplates => {
                    format!("@{server}:{}", row.name)
                }
            },
            text: row.text.clone(),
            note: row.note.clone(),
        };
        let rows: Vec<Row> = self.rows.iter().map(named).collect();
        rows.into_iter()
    }
}
