//! How what was found is shown to people.

use cocode_core::{Explained, Hit, ScorePart};

use super::for_people;
use crate::printer::Paint;
use crate::toolbox::{ServerTools, ToolEntry, Toolbox};

#[test]
fn descriptions_are_cut_to_the_terminal_and_parts_stand_below() {
    let tool = |name: &str, about: &str| ToolEntry {
        name: name.to_owned(),
        description: Some(about.to_owned()),
        ..ToolEntry::default()
    };
    let toolbox = Toolbox {
        servers: vec![ServerTools {
            name: "files".to_owned(),
            tools: vec![
                tool(
                    "read",
                    "Reads a file,\nall of it, from wherever it is\n\nMore.",
                ),
                tool("ls", "Lists"),
            ],
            ..ServerTools::default()
        }],
        unknown: Vec::new(),
    };
    let found = |tool: &str, score: f64, parts: Vec<ScorePart>| Explained {
        hit: Hit {
            server: "files".into(),
            tool: tool.into(),
            score,
        },
        parts,
    };
    let part = ScorePart {
        what: "read".to_owned(),
        found: "name".to_owned(),
        score: 8.25,
    };
    let all = [
        found("read", 12.3456, vec![part]),
        found("ls", 0.5, Vec::new()),
    ];
    assert_eq!(
        for_people(&all, &toolbox, 45, Paint { on: false }),
        "1  12.35  files.read  Reads a file, all of i…\n\
         \x20   8.25    read: name\n\
         2   0.50  files.ls    Lists\n"
    );
    let piped = for_people(&all, &toolbox, usize::MAX / 4, Paint { on: false });
    assert!(piped.contains("from wherever it is\n"), "{piped}");
}
