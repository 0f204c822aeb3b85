//! Compares the pinned table with what the installed suite itself lists, so that no scenario
//! appears or vanishes unseen.

use std::collections::{BTreeMap, BTreeSet};

use super::table::{Run, Suite};
use crate::failure::Failure;
use crate::peers;
use crate::shell::{output, program};

/// Scenario names, each with the revisions and other tags it is listed under.
type Listed = BTreeMap<String, BTreeSet<String>>;

/// Fails with every difference of every suite at once.
pub(super) fn compare_all(suites: &[Suite]) -> Result<(), Failure> {
    let mut differences = Vec::new();
    for suite in suites {
        let listed = parse(&list(suite, &[])?);
        differences.extend(compare(suite, &listed));
        for run in suite.runs {
            if let Some(revision) = run.revision {
                let required = parse(&list(suite, &["--requirements", revision])?);
                differences.extend(missing_requirements(suite, run, &required));
            }
        }
    }
    if differences.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!(
            "xtask/src/conformance/table.rs is not what the suite lists:\n  {}",
            differences.join("\n  ")
        )))
    }
}

fn list(suite: &Suite, arguments: &[&str]) -> Result<String, Failure> {
    let script = peers::npm_package(suite.package).join("dist/index.js");
    output(
        program(peers::node())
            .arg(script)
            .args(["list", "--client"])
            .args(arguments),
    )
}

/// Reads lines such as `  - tools_call [2025-06-18,2025-11-25]`; in a requirement list only those
/// of the client section, which have no tags, and unscored ones, tagged `[client]`.
fn parse(text: &str) -> Listed {
    let mut listed = Listed::new();
    let mut of_servers = false;
    for line in text.lines() {
        let Some(item) = line.trim_start().strip_prefix("- ") else {
            if !line.starts_with(' ') && !line.is_empty() {
                of_servers = line.starts_with("Server scenarios");
            }
            continue;
        };
        let (name, tags) = item.split_once(" [").unwrap_or((item, ""));
        let tags: BTreeSet<String> = tags
            .trim_end_matches(']')
            .split(',')
            .map(str::to_owned)
            .collect();
        if !of_servers && !tags.contains("server") {
            listed.insert(name.to_owned(), tags);
        }
    }
    listed
}

fn postponed(suite: &Suite) -> BTreeSet<&'static str> {
    suite
        .not_yet
        .iter()
        .flat_map(|postponed| postponed.names.iter().copied())
        .collect()
}

fn names(run: &Run) -> BTreeSet<&'static str> {
    run.scenarios.iter().map(|scenario| scenario.name).collect()
}

fn compare(suite: &Suite, listed: &Listed) -> Vec<String> {
    let mut differences = Vec::new();
    let postponed = postponed(suite);
    let mut known = postponed.clone();
    for run in suite.runs {
        let pinned = names(run);
        let applicable: BTreeSet<&str> = listed
            .iter()
            .filter(|(_, tags)| run.revision.is_none_or(|revision| tags.contains(revision)))
            .map(|(name, _)| name.as_str())
            .filter(|name| !postponed.contains(name))
            .collect();
        let place = format!(
            "{} at {}",
            suite.label,
            run.revision.unwrap_or("any revision")
        );
        for name in applicable.difference(&pinned) {
            differences.push(format!(
                "{place}: {name} is listed, and neither run nor postponed"
            ));
        }
        for name in pinned.difference(&applicable) {
            differences.push(format!("{place}: {name} is run, and not listed"));
        }
        known.extend(pinned);
    }
    for name in listed.keys().filter(|name| !known.contains(name.as_str())) {
        differences.push(format!("{}: {name} is new", suite.label));
    }
    for name in postponed.iter().filter(|name| !listed.contains_key(**name)) {
        differences.push(format!(
            "{}: {name} is postponed, and not listed",
            suite.label
        ));
    }
    differences
}

/// What the suite requires at a revision must be run there, unless it is postponed by name.
fn missing_requirements(suite: &Suite, run: &Run, required: &Listed) -> Vec<String> {
    let mut known = postponed(suite);
    known.extend(names(run));
    let revision = run.revision.unwrap_or_default();
    if required.is_empty() {
        return vec![format!("{}: requires nothing at {revision}", suite.label)];
    }
    required
        .keys()
        .filter(|name| !known.contains(name.as_str()))
        .map(|name| {
            format!(
                "{}: {name} is required at {revision}, and not run",
                suite.label
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{compare, missing_requirements, parse};
    use crate::conformance::table::{Postponed, Run, SUITES, Scenario, Suite};

    const fn scenario(name: &'static str) -> Scenario {
        Scenario {
            name,
            successes: 1,
            required: &[],
            may_warn: &[],
            alone: false,
        }
    }

    const SUITE: Suite = Suite {
        label: "s",
        package: "p",
        runs: &[Run {
            revision: Some("2026-07-28"),
            scenarios: &[scenario("a"), scenario("b")],
        }],
        not_yet: &[Postponed {
            reason: "later",
            names: &["auth/x"],
        }],
    };

    #[track_caller]
    fn check(list: &str, expected: &[&str]) {
        assert_eq!(compare(&SUITE, &parse(list)), expected);
    }

    #[test]
    fn the_same_set_has_no_difference() {
        check(
            "Client scenarios:\n  - a [2026-07-28]\n  - b [2025-11-25,2026-07-28]\n  - auth/x [extension]",
            &[],
        );
    }

    #[test]
    fn new_and_vanished_scenarios_are_differences() {
        check(
            "Client scenarios:\n  - a [2026-07-28]\n  - c [2026-07-28]\n  - d [extension]\n",
            &[
                "s at 2026-07-28: c is listed, and neither run nor postponed",
                "s at 2026-07-28: b is run, and not listed",
                "s: c is new",
                "s: d is new",
                "s: auth/x is postponed, and not listed",
            ],
        );
    }

    #[test]
    fn required_client_scenarios_must_be_run_or_postponed() {
        let list = "Required for 2026-07-28 (4 scenarios):\n\n\
            Server scenarios (test against a server):\n  - ping\n\n\
            Client scenarios (test against a client):\n  - a\n  - e\n  - auth/x\n\n\
            Run and reported, but never scored:\n  extension (2):\n    - tasks [server]\n    - f [client]\n";
        assert_eq!(
            missing_requirements(&SUITE, &SUITE.runs[0], &parse(list)),
            [
                "s: e is required at 2026-07-28, and not run",
                "s: f is required at 2026-07-28, and not run",
            ]
        );
    }

    #[test]
    fn an_empty_requirement_list_is_a_difference() {
        assert_eq!(
            missing_requirements(&SUITE, &SUITE.runs[0], &parse("")),
            ["s: requires nothing at 2026-07-28"]
        );
    }

    #[test]
    fn every_pinned_scenario_demands_a_success() {
        for suite in SUITES {
            for scenario in suite.runs.iter().flat_map(|run| run.scenarios) {
                assert!(
                    scenario.successes >= scenario.required.len().max(1),
                    "{}",
                    scenario.name
                );
            }
        }
    }
}
