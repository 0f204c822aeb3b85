//! The tools of many real servers, as these list them: given to every provider, and searched.

mod bm25;
mod listing;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use cocode_core::{
    Dialect, NameTable, ServerName, ToolIndex, ToolName, ToolSource, ToolText, Unrepairable,
    convert,
};
use cocode_testkit::violations;
use serde::Deserialize;
use serde_json::Value;

use bm25::Bm25;
use listing::Listed;

/// With fewer servers than this nothing is said about servers in general.
const MIN_SERVERS: usize = 20;
/// So many tools are shown to a model that searches, if it does not say otherwise.
const SHOWN: usize = 5;
/// The least share of queries that have a right tool among the first five.
const MIN_FOUND: f64 = 0.8;
/// How much better the ranking is to be than one that only counts words.
const MIN_AHEAD: f64 = 0.15;

/// Something that somebody asks for.
#[derive(Debug, Deserialize)]
struct Item {
    query: String,
    kind: String,
    server: String,
    tools: Vec<String>,
    /// Right ones of other servers, as `server/tool`.
    #[serde(default)]
    also: Vec<String>,
}

/// What came of the tools of one server in one dialect.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    exact: usize,
    noted: usize,
    not_strict: usize,
    quarantined: usize,
}

#[test]
fn tools_of_catalog_peers_suit_every_provider_and_are_found() {
    let servers = listing::all();
    assert!(servers.len() >= MIN_SERVERS, "only {}", servers.len());
    for server in &servers {
        let (n_tools, least) = (server.tools.len(), server.min_tools);
        assert!(n_tools >= least, "{}: {n_tools} of {least}", server.name);
        assert_eq!(server.unusable, [] as [String; 0], "{}", server.name);
    }
    let problems = every_provider(&servers);
    let found = evaluate(&servers);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let Found { ours, plain } = found;
    assert!(ours >= MIN_FOUND, "hit@{SHOWN} is {ours:.3}");
    assert!(ours >= plain + MIN_AHEAD, "{ours:.3}, BM25 has {plain:.3}");
}

/// Writes every tool in every dialect. Gives what a provider would refuse, and prints the rest.
fn every_provider(servers: &[Listed]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut table = BTreeMap::new();
    for server in servers {
        let name: ServerName = server.name.parse().unwrap();
        let own = server.tools.iter().map(|tool| tool.name.as_str());
        let names = NameTable::build(own.map(|tool| (name.clone(), ToolName::new(tool))));
        for tool in &server.tools {
            let schema: Value = tool.input_schema.decode().unwrap();
            let seen = names.name_of(&name, &ToolName::new(tool.name.as_str()));
            let source = ToolSource {
                name: seen.unwrap().as_str(),
                description: tool.description.as_deref(),
                input_schema: &schema,
            };
            for dialect in Dialect::ALL {
                let tally: &mut Tally = table.entry((server.name.as_str(), dialect)).or_default();
                let problem = |what: &str| format!("{} for {dialect}: {what}", source.name);
                match convert(&source, dialect) {
                    Ok(written) => {
                        *if written.notes.is_empty() {
                            &mut tally.exact
                        } else {
                            &mut tally.noted
                        } += 1;
                        if written.name != source.name {
                            problems.push(problem("it is renamed"));
                        }
                        let refused = violations(dialect.as_str(), &written.definition());
                        problems.extend(refused.iter().map(|what| problem(what)));
                    }
                    Err(Unrepairable::NotStrict { .. }) if dialect == Dialect::OpenAiStrict => {
                        tally.not_strict += 1;
                    }
                    Err(error) => {
                        tally.quarantined += 1;
                        problems.push(problem(&error.to_string()));
                    }
                }
            }
        }
    }
    print(&conversions(servers, &table));
    problems
}

/// A table of what was exact, what was changed, what cannot be strict, and what cannot be given.
fn conversions(servers: &[Listed], table: &BTreeMap<(&str, Dialect), Tally>) -> String {
    let mut text = "| server | tools |".to_owned();
    for dialect in Dialect::ALL {
        write!(text, " {dialect} |").unwrap();
    }
    text.push_str("\n|---|---|---|---|---|---|---|\n");
    let mut sums: BTreeMap<Dialect, Tally> = BTreeMap::new();
    for server in servers {
        write!(text, "| {} | {} |", server.name, server.tools.len()).unwrap();
        for dialect in Dialect::ALL {
            let tally = table.get(&(server.name.as_str(), dialect));
            let tally = tally.copied().unwrap_or_default();
            write!(text, " {} |", tally.cell(dialect)).unwrap();
            sums.entry(dialect).or_default().add(tally);
        }
        text.push('\n');
    }
    let n_tools: usize = servers.iter().map(|server| server.tools.len()).sum();
    write!(text, "| all {} | {n_tools} |", servers.len()).unwrap();
    for (dialect, sum) in sums {
        write!(text, " {} |", sum.cell(dialect)).unwrap();
    }
    text.push('\n');
    text
}

impl Tally {
    fn cell(self, dialect: Dialect) -> String {
        let Self {
            exact,
            noted,
            not_strict,
            quarantined,
        } = self;
        if dialect == Dialect::OpenAiStrict {
            format!("{exact} / {noted} / {not_strict} / {quarantined}")
        } else {
            format!("{exact} / {noted} / {quarantined}")
        }
    }

    fn add(&mut self, other: Self) {
        self.exact += other.exact;
        self.noted += other.noted;
        self.not_strict += other.not_strict;
        self.quarantined += other.quarantined;
    }
}

/// The share of queries with a right tool among the first, by our ranking and a plain one.
struct Found {
    ours: f64,
    plain: f64,
}

fn evaluate(servers: &[Listed]) -> Found {
    let items: Vec<Item> = listing::read("evaluation.json");
    let mut index = ToolIndex::new();
    let mut plain = Bm25::default();
    let mut known = BTreeSet::new();
    for server in servers {
        let tools = server.tools.iter();
        let texts = tools.map(|tool| ToolText {
            name: &tool.name,
            title: tool.title.as_deref(),
            description: tool.description.as_deref(),
            input_schema: Some(tool.input_schema.as_str()),
        });
        index.set_server(&server.name, server.about.as_deref(), texts);
        for tool in &server.tools {
            let name = format!("{}/{}", server.name, tool.name);
            plain.add(name.clone(), &server.name, tool);
            known.insert(name);
        }
    }
    let mut kinds: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut missed = String::new();
    for item in &items {
        let own = item
            .tools
            .iter()
            .map(|tool| format!("{}/{tool}", item.server));
        let right: Vec<String> = own.chain(item.also.iter().cloned()).collect();
        for name in &right {
            assert!(known.contains(name), "no server has {name}");
        }
        let hits = index.search(&item.query, SHOWN);
        let hits = hits
            .iter()
            .map(|hit| format!("{}/{}", hit.server, hit.tool));
        let hits: Vec<String> = hits.collect();
        let is_hit = |found: &[String]| found.iter().any(|name| right.contains(name));
        let [n_items, ours, by_words] = kinds.entry(item.kind.as_str()).or_default();
        *n_items += 1;
        *ours += usize::from(is_hit(&hits));
        *by_words += usize::from(is_hit(&plain.search(&item.query, SHOWN)));
        if !is_hit(&hits) {
            let (query, kind) = (&item.query, &item.kind);
            let (right, hits) = (right.join(", "), hits.join(", "));
            writeln!(missed, "{kind}: {query}\n  right: {right}\n  found: {hits}").unwrap();
        }
    }
    let mut text = format!("| kind | queries | hit@{SHOWN} | BM25 |\n|---|---|---|---|\n");
    let mut sum = [0; 3];
    for (kind, counts) in &kinds {
        row(&mut text, kind, *counts);
        sum.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
    }
    row(&mut text, "all", sum);
    print(&format!("{text}\nNot among the first {SHOWN}:\n{missed}"));
    let [n_items, ours, by_words] = sum;
    Found {
        ours: share(ours, n_items),
        plain: share(by_words, n_items),
    }
}

fn row(text: &mut String, kind: &str, counts: [usize; 3]) {
    let [n_items, ours, plain] = counts;
    let (ours, plain) = (share(ours, n_items), share(plain, n_items));
    writeln!(text, "| {kind} | {n_items} | {ours:.3} | {plain:.3} |").unwrap();
}

#[expect(clippy::cast_precision_loss, reason = "there are few queries")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

#[expect(
    clippy::print_stdout,
    reason = "shown when the test fails, or by `--nocapture`"
)]
fn print(text: &str) {
    println!("{text}");
}
