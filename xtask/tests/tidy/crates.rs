//! Rules for crates: who may depend on whom, and what a published manifest needs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::none;
use crate::tree::root;

/// What a crate of ours may use of ours.
enum Edges {
    /// These and no others.
    Exactly(&'static [&'static str]),
    /// Any of these.
    Within(&'static [&'static str]),
}

/// The rooms of the house, see ARCHITECTURE.md. Tests may use the testkit besides.
const EDGES: &[(&str, Edges)] = &[
    ("cocode-core", Edges::Exactly(&[])),
    ("cocode-process", Edges::Exactly(&[])),
    ("cocode-wire", Edges::Exactly(&["cocode-process"])),
    (
        "cocode-client",
        Edges::Exactly(&["cocode-core", "cocode-wire"]),
    ),
    ("cocode-config", Edges::Exactly(&["cocode-core"])),
    (
        "cocode-auth",
        Edges::Within(&["cocode-core", "cocode-process", "cocode-wire"]),
    ),
    (
        "cocode-access",
        Edges::Exactly(&["cocode-core", "cocode-wire"]),
    ),
    (
        "cocode-postgres",
        Edges::Exactly(&["cocode-access", "cocode-agent", "cocode-wire"]),
    ),
    (
        "cocode-gateway",
        Edges::Exactly(&["cocode-client", "cocode-core", "cocode-wire"]),
    ),
    (
        "cocode-admin",
        Edges::Exactly(&["cocode-client", "cocode-wire"]),
    ),
    (
        "cocode-tools",
        Edges::Within(&["cocode-core", "cocode-process"]),
    ),
    (
        "cocode-agent",
        Edges::Within(&[
            "cocode-client",
            "cocode-core",
            "cocode-tools",
            "cocode-wire",
        ]),
    ),
    ("cocode-terminal", Edges::Exactly(&["cocode-agent"])),
    (
        "cocode",
        Edges::Within(&[
            "cocode-admin",
            "cocode-access",
            "cocode-agent",
            "cocode-auth",
            "cocode-client",
            "cocode-config",
            "cocode-core",
            "cocode-gateway",
            "cocode-postgres",
            "cocode-process",
            "cocode-terminal",
            "cocode-tools",
            "cocode-wire",
        ]),
    ),
    ("cocode-testkit", Edges::Exactly(&[])),
    ("cocode-fixture", Edges::Exactly(&[])),
    (
        "cocode-bench",
        Edges::Within(&[
            "cocode-client",
            "cocode-core",
            "cocode-gateway",
            "cocode-process",
            "cocode-testkit",
            "cocode-wire",
        ]),
    ),
    ("xtask", Edges::Exactly(&[])),
];

const TESTKIT: &str = "cocode-testkit";

fn packages() -> Vec<Value> {
    let output = Command::new(std::env::var_os("CARGO").expect("cargo or nextest runs the tests"))
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .expect("cargo starts");
    assert!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().expect("every package has a name")
}

/// Dependencies on crates of this workspace: those of the product, and those of tests.
fn edges(package: &Value) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let mut product = BTreeSet::new();
    let mut tests = BTreeSet::new();
    for dependency in package["dependencies"].as_array().expect("dependencies") {
        if dependency["path"].is_null() {
            continue;
        }
        let name = name(dependency);
        if dependency["kind"] == "dev" {
            tests.insert(name)
        } else {
            product.insert(name)
        };
    }
    (product, tests)
}

#[test]
fn crates_depend_on_each_other_as_the_table_says() {
    let table: BTreeMap<&str, &Edges> = EDGES.iter().map(|(name, edges)| (*name, edges)).collect();
    let mut offenders = Vec::new();
    for package in &packages() {
        let name = name(package);
        let (product, tests) = edges(package);
        let Some(edges) = table.get(name) else {
            offenders.push(format!(
                "{name} is not in the table of xtask/tests/tidy/crates.rs"
            ));
            continue;
        };
        let (Edges::Exactly(allowed) | Edges::Within(allowed)) = edges;
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        for extra in product.difference(&allowed) {
            offenders.push(format!("{name} must not depend on {extra}"));
        }
        if let Edges::Exactly(_) = edges {
            for missing in allowed.difference(&product) {
                offenders.push(format!(
                    "{name} no longer depends on {missing}: correct the table"
                ));
            }
        }
        for extra in tests
            .difference(&allowed)
            .filter(|extra| **extra != TESTKIT)
        {
            offenders.push(format!("tests of {name} must not depend on {extra}"));
        }
    }
    none("crate edges", &offenders);
}

#[test]
fn manifests_are_fit_to_publish() {
    let mut offenders = Vec::new();
    for package in &packages() {
        let name = name(package);
        let path = package["manifest_path"].as_str().expect("manifest path");
        let manifest = fs::read_to_string(path).expect("manifest is readable");
        if package["description"].as_str().is_none_or(str::is_empty) {
            offenders.push(format!("{name} has no description"));
        }
        for key in ["edition", "license", "rust-version"] {
            let inherited = format!("{key}.workspace = true");
            if !manifest.lines().any(|line| line.trim() == inherited) {
                offenders.push(format!("{name} does not take {key} from the workspace"));
            }
        }
        // An empty list of registries: never published.
        let published = package["publish"] != serde_json::json!([]);
        let readme = package["readme"].as_str();
        let folder = Path::new(path).parent().expect("a manifest is in a folder");
        if published && !readme.is_some_and(|readme| folder.join(readme).is_file()) {
            offenders.push(format!("{name} has no README for its page"));
        }
        let lints = manifest.split("[lints]").nth(1).unwrap_or_default();
        if lints.trim_start().lines().next() != Some("workspace = true") {
            offenders.push(format!("{name} does not take the lints from the workspace"));
        }
    }
    none("manifests", &offenders);
}
