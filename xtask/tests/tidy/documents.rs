//! Rules for Markdown files.

use std::fs;
use std::path::Path;

use crate::none;
use crate::tree::{files, root};

/// Where the links of a Markdown text point, with the numbers of their lines. What stands in code
/// is no link.
fn link_targets(text: &str) -> Vec<(usize, String)> {
    let mut targets = Vec::new();
    let mut in_fence = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
            continue;
        }
        if in_fence {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect();
        for rest in prose.split("](").skip(1) {
            if let Some((target, _)) = rest.split_once(')') {
                targets.push((index + 1, target.to_owned()));
            }
        }
        // A definition for reference links: `[name]: target`.
        if let Some((_, target)) = prose.trim_start().split_once("]: ")
            && prose.trim_start().starts_with('[')
        {
            targets.push((index + 1, target.trim().to_owned()));
        }
    }
    targets
}

/// Whether a link stays in the repository, and so can be followed here.
fn is_relative(target: &str) -> bool {
    !target.contains("://") && !target.starts_with("mailto:") && !target.starts_with('#')
}

#[test]
fn links_between_documents_lead_somewhere() {
    let root = root().canonicalize().expect("the root exists");
    let mut offenders = Vec::new();
    for file in files() {
        if file.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(root.join(&file)).expect("Markdown files are UTF-8");
        let folder = root.join(file.parent().unwrap_or(Path::new("")));
        for (line, target) in link_targets(&text) {
            let path = target.split('#').next().unwrap_or_default();
            let leads = || {
                let found = folder.join(path).canonicalize();
                found.is_ok_and(|found| found.starts_with(&root))
            };
            if is_relative(&target) && !leads() {
                offenders.push(format!("{}:{line}: {target}", file.display()));
            }
        }
    }
    none("links that lead nowhere", &offenders);
}

#[test]
fn links_are_found_in_prose_only() {
    let text = "a [b](c.md#d) [`e`](f.md), `[g](h)`\n```\n[i](j)\n```\n[k]: l.md\n";
    let expected = [(1, "c.md#d"), (1, "f.md"), (5, "l.md")];
    let found = link_targets(text);
    let found: Vec<(usize, &str)> = found.iter().map(|(n, text)| (*n, text.as_str())).collect();
    assert_eq!(found, expected);
}
