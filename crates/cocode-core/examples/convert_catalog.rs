//! Converts a catalog of tools for every provider, and checks what comes out against their rules.
//!
//! The catalog is a file with a JSON array of `{"server", "name", "description", "inputSchema"}`:
//!
//! ```sh
//! cargo run -p cocode-core --example convert_catalog -- catalog.json
//! cargo run -p cocode-core --example convert_catalog -- catalog.json gemini SERVER TOOL
//! ```
//!
//! The second form shows one tool in one dialect.
#![expect(clippy::print_stdout, reason = "its result is what it prints")]

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;

use cocode_core::{Dialect, ToolSource, Unrepairable, convert};
use cocode_testkit::violations;
use serde_json::Value;

#[derive(Default)]
struct Counts {
    exact: usize,
    noted: usize,
    refused: usize,
    quarantined: usize,
    violations: usize,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let file = arguments.first().ok_or("give the file with the catalog")?;
    let catalog: Vec<Value> = serde_json::from_slice(&std::fs::read(file)?)?;
    if let [_, dialect, server, tool] = arguments.as_slice() {
        show(&catalog, dialect.parse()?, server, tool)?;
        return Ok(ExitCode::SUCCESS);
    }
    println!("dialect        exact  noted  not strict  quarantined  violations");
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut failed = false;
    for dialect in Dialect::ALL {
        let mut counts = Counts::default();
        for entry in &catalog {
            count(entry, dialect, &mut counts, &mut reasons);
        }
        let Counts {
            exact,
            noted,
            refused,
            quarantined,
            violations,
        } = counts;
        failed |= violations > 0;
        println!(
            "{dialect:<13}  {exact:>5}  {noted:>5}  {refused:>10}  {quarantined:>11}  {violations:>10}"
        );
    }
    println!("\nwhat was changed, or why not:");
    for (reason, times) in reasons {
        println!("{times:>6}  {reason}");
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn source(entry: &Value) -> ToolSource<'_> {
    ToolSource {
        name: entry["name"].as_str().unwrap_or_default(),
        description: entry["description"].as_str(),
        input_schema: &entry["inputSchema"],
    }
}

fn count(
    entry: &Value,
    dialect: Dialect,
    counts: &mut Counts,
    reasons: &mut BTreeMap<String, usize>,
) {
    let tool = match convert(&source(entry), dialect) {
        Ok(tool) => tool,
        Err(error) => {
            let name = format!("{}/{}", entry["server"], entry["name"]);
            let reason = if let Unrepairable::NotStrict { reason, .. } = &error {
                counts.refused += 1;
                format!("not strict: {reason}")
            } else {
                counts.quarantined += 1;
                println!("{dialect}: {name} is quarantined: {error}");
                "quarantined".to_owned()
            };
            *reasons.entry(format!("{dialect}: {reason}")).or_default() += 1;
            return;
        }
    };
    if tool.notes.is_empty() {
        counts.exact += 1;
    } else {
        counts.noted += 1;
    }
    for note in &tool.notes {
        let reason = format!("{dialect}: {}", note.what);
        *reasons.entry(reason).or_default() += 1;
    }
    let found = violations(dialect.as_str(), &tool.definition());
    counts.violations += found.len();
    for violation in found {
        println!(
            "{dialect}: {}/{} {violation}",
            entry["server"], entry["name"]
        );
    }
}

fn show(
    catalog: &[Value],
    dialect: Dialect,
    server: &str,
    tool: &str,
) -> Result<(), Box<dyn Error>> {
    let wanted = |entry: &&Value| entry["server"] == server && entry["name"] == tool;
    let entry = catalog.iter().find(wanted).ok_or("there is no such tool")?;
    println!("{}", serde_json::to_string_pretty(&entry["inputSchema"])?);
    let converted = convert(&source(entry), dialect)?;
    println!("{}", serde_json::to_string_pretty(&converted.definition())?);
    for note in &converted.notes {
        println!("{note}");
    }
    Ok(())
}
