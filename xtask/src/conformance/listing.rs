//! Compares the pinned table with what the installed suite itself lists, so that no scenario
//! appears or vanishes unseen.

use std::collections::{BTreeMap, BTreeSet};

use super::table::{Part, Run, Side, Suite};
use crate::failure::Failure;
use crate::peers;
use crate::shell::{output, program};

/// Scenario names, each with the revisions and other tags it is listed under.
type Listed = BTreeMap<String, BTreeSet<String>>;

/// Fails with every difference of every suite at once.
pub(super) fn compare_all(suites: &[Suite]) -> Result<(), Failure> {
    let mut differences = Vec::new();
    for suite in suites {
        let listed = parse(suite.side, &list(suite, &[])?);
        differences.extend(compare(suite, &listed));
        for run in suite.runs.iter().filter(|run| run.part != Part::Whole) {
            let revision = run.revision.unwrap_or_default();
            let set = parse(suite.side, &list(suite, &["--requirements", revision])?);
            differences.extend(compare_with_requirements(suite, run, &set));
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
            .args(["list", suite.side.flag()])
            .args(arguments),
    )
}

/// Names the scenarios that exist and are not run, with the reason.
pub(super) fn say_what_is_not_run(suites: &[Suite]) {
    for suite in suites {
        for not_run in suite.not_run {
            println!(
                "not run: {} ({}): {}",
                not_run.names.join(" "),
                suite.label,
                not_run.reason
            );
        }
    }
}

/// Reads lines such as `  - tools_call [2025-06-18,2025-11-25]`; in a requirement list only those
/// of the section of the side, which have no tags, and unscored ones, tagged as `[client]`.
fn parse(side: Side, text: &str) -> Listed {
    let mut listed = Listed::new();
    let other = side.other();
    let mut of_other = false;
    for line in text.lines() {
        let Some(item) = line.trim_start().strip_prefix("- ") else {
            if !line.starts_with(' ') && !line.is_empty() {
                of_other = line.starts_with(other.section());
            }
            continue;
        };
        let (name, tags) = item.split_once(" [").unwrap_or((item, ""));
        let tags: BTreeSet<String> = tags
            .trim_end_matches(']')
            .split(',')
            .map(str::to_owned)
            .collect();
        if !of_other && !tags.contains(other.tag()) {
            listed.entry(name.to_owned()).or_default().extend(tags);
        }
    }
    listed
}

fn left_out(suite: &Suite) -> BTreeSet<&'static str> {
    suite
        .not_run
        .iter()
        .flat_map(|not_run| not_run.names.iter().copied())
        .collect()
}

fn names(run: &Run) -> BTreeSet<&'static str> {
    run.scenarios().map(|scenario| scenario.name).collect()
}

/// Everything listed is run at every revision it is tagged with, or left out by name; everything
/// run is listed.
fn compare(suite: &Suite, listed: &Listed) -> Vec<String> {
    let mut differences = Vec::new();
    let left_out = left_out(suite);
    let mut known = left_out.clone();
    let mut at: BTreeMap<Option<&str>, BTreeSet<&str>> = BTreeMap::new();
    let applies = |name: &str, revision: Option<&str>| {
        let tags = listed.get(name);
        tags.is_some_and(|tags| revision.is_none_or(|revision| tags.contains(revision)))
    };
    for run in suite.runs {
        let pinned = names(run);
        for name in &pinned {
            // Extensions have no revision: the requirement set names them all the same.
            let listed = match run.part {
                Part::Unscored => listed.contains_key(*name),
                Part::Scored | Part::Whole => applies(name, run.revision),
            };
            if !listed {
                differences.push(format!(
                    "{} at {run}: {name} is run, and not listed",
                    suite.label
                ));
            }
        }
        known.extend(&pinned);
        at.entry(run.revision).or_default().extend(pinned);
    }
    for (revision, pinned) in at {
        for name in listed.keys().map(String::as_str) {
            if applies(name, revision) && !pinned.contains(name) && !left_out.contains(name) {
                differences.push(format!(
                    "{} at {}: {name} is listed, and neither run nor left out",
                    suite.label,
                    revision.unwrap_or("any revision")
                ));
            }
        }
    }
    for name in listed.keys().filter(|name| !known.contains(name.as_str())) {
        differences.push(format!("{}: {name} is new", suite.label));
    }
    for name in left_out.iter().filter(|name| !listed.contains_key(**name)) {
        differences.push(format!(
            "{}: {name} is left out, and not listed",
            suite.label
        ));
    }
    differences
}

/// A part of a requirement set is exactly what the run of that part has.
fn compare_with_requirements(suite: &Suite, run: &Run, set: &Listed) -> Vec<String> {
    let tag = match run.part {
        Part::Scored => "",
        Part::Unscored => suite.side.tag(),
        Part::Whole => return Vec::new(),
    };
    let left_out = left_out(suite);
    let pinned = names(run);
    let demanded: BTreeSet<&str> = set
        .iter()
        .filter(|(_, tags)| tags.contains(tag))
        .map(|(name, _)| name.as_str())
        .filter(|name| !left_out.contains(name))
        .collect();
    let place = format!("{} at {run}", suite.label);
    let missing = demanded.difference(&pinned);
    let missing =
        missing.map(|name| format!("{place}: {name} is in the requirements, and not run"));
    let surplus = pinned.difference(&demanded);
    let surplus =
        surplus.map(|name| format!("{place}: {name} is run, and not in the requirements"));
    missing.chain(surplus).collect()
}

#[cfg(test)]
mod tests {
    use super::{compare, compare_with_requirements, parse};
    use crate::conformance::table::{NotRun, Part, Run, Side, Suite, scenario};

    const SUITE: Suite = Suite {
        side: Side::Client,
        label: "s",
        package: "p",
        runs: &[
            Run {
                revision: Some("2026-07-28"),
                part: Part::Scored,
                lists: &[&[scenario("a", 1)], &[scenario("b", 1)]],
            },
            Run {
                revision: Some("2026-07-28"),
                part: Part::Unscored,
                lists: &[&[scenario("x", 1)]],
            },
            Run {
                revision: Some("2025-03-26"),
                part: Part::Whole,
                lists: &[&[scenario("o", 1)]],
            },
        ],
        not_run: &[NotRun {
            reason: "outdated",
            names: &["z"],
        }],
    };

    const REQUIREMENTS: &str = "Required for 2026-07-28 (4 scenarios):\n\n\
        Server scenarios (test against a server):\n  - ping\n\n\
        Client scenarios (test against a client):\n  - a\n  - b\n  - z\n\n\
        Run and reported, but never scored:\n  extension (2):\n    - tasks [server]\n    - x [client]\n";

    #[track_caller]
    fn check(list: &str, expected: &[&str]) {
        assert_eq!(compare(&SUITE, &parse(Side::Client, list)), expected);
    }

    #[track_caller]
    fn check_requirements(list: &str, expected: &[&str]) {
        let set = parse(Side::Client, list);
        let runs = SUITE.runs.iter();
        let differences: Vec<String> = runs
            .flat_map(|run| compare_with_requirements(&SUITE, run, &set))
            .collect();
        assert_eq!(differences, expected);
    }

    #[test]
    fn the_same_set_has_no_difference() {
        check(
            "Client scenarios:\n  - a [2026-07-28]\n  - b [2025-11-25,2026-07-28]\n  - o [2025-03-26]\n  - x [extension]\n  - z [2026-07-28]",
            &[],
        );
        check_requirements(REQUIREMENTS, &[]);
    }

    #[test]
    fn new_and_vanished_scenarios_are_differences() {
        check(
            "Client scenarios:\n  - a [2026-07-28]\n  - c [2026-07-28]\n  - d [extension]\n  - o [2025-06-18]\n",
            &[
                "s at 2026-07-28, scored: b is run, and not listed",
                "s at 2026-07-28, unscored: x is run, and not listed",
                "s at 2025-03-26: o is run, and not listed",
                "s at 2026-07-28: c is listed, and neither run nor left out",
                "s: c is new",
                "s: d is new",
                "s: z is left out, and not listed",
            ],
        );
    }

    #[test]
    fn what_the_requirements_name_must_be_run_and_counted_there() {
        check_requirements(
            &REQUIREMENTS
                .replace("- b\n", "- e\n")
                .replace("- x [client]", "- a [client]"),
            &[
                "s at 2026-07-28, scored: e is in the requirements, and not run",
                "s at 2026-07-28, scored: b is run, and not in the requirements",
                "s at 2026-07-28, unscored: a is in the requirements, and not run",
                "s at 2026-07-28, unscored: x is run, and not in the requirements",
            ],
        );
    }

    #[test]
    fn an_empty_requirement_list_is_a_difference() {
        check_requirements(
            "",
            &[
                "s at 2026-07-28, scored: a is run, and not in the requirements",
                "s at 2026-07-28, scored: b is run, and not in the requirements",
                "s at 2026-07-28, unscored: x is run, and not in the requirements",
            ],
        );
    }
}
