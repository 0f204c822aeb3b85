//! Judges the checks that one scenario wrote, and the end of a client. Knows nothing of processes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::table::Scenario;

/// The exit status of our client when it reports an error: not that of a panic or a signal.
const FAILED: &str = "1";

/// What a judged scenario showed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Judgment {
    pub(super) successes: usize,
    /// Why the scenario does not pass; empty when it does.
    pub(super) complaints: Vec<String>,
}

/// Reads the suite's `checks.json`: no failure, no warning but the listed ones, every required
/// check and no fewer successes than pinned. What is excused must be in need of it.
pub(super) fn judge(scenario: &Scenario, checks: &str) -> Judgment {
    let Ok(Value::Array(checks)) = serde_json::from_str(checks) else {
        let complaints = vec!["the suite's checks are not a JSON array".to_owned()];
        return Judgment {
            successes: 0,
            complaints,
        };
    };
    let mut successes = 0;
    let mut succeeded = BTreeSet::new();
    let mut complaints = Vec::new();
    for check in &checks {
        let name = check["name"].as_str().unwrap_or("(unnamed)");
        let message = check["errorMessage"]
            .as_str()
            .or_else(|| check["description"].as_str());
        let message = message.unwrap_or("no message");
        match check["status"].as_str() {
            Some("SUCCESS") => {
                successes += 1;
                succeeded.insert(name);
            }
            Some("WARNING") if scenario.may_warn.contains(&name) => {}
            Some("FAILURE" | "WARNING") if scenario.excused.contains(&name) => {}
            // Logs of the suite, and checks that the revision does not have.
            Some("INFO" | "SKIPPED") => {}
            Some(status @ ("FAILURE" | "WARNING")) => {
                complaints.push(format!("{status} {name}: {message}"));
            }
            status => complaints.push(format!("{name} has the unknown status {status:?}")),
        }
    }
    let is_excused = |name: &&str| scenario.excused.contains(name);
    let missing = scenario.demanded().filter(|name| !succeeded.contains(name));
    for required in missing.filter(|name| !is_excused(name)) {
        complaints.push(format!("no success of the required check {required}"));
    }
    let needless = scenario
        .excused
        .iter()
        .filter(|name| succeeded.contains(*name));
    for needless in needless {
        complaints.push(format!("{needless} succeeds, and is excused from it"));
    }
    let expected = scenario.successes.saturating_sub(scenario.excused.len());
    if successes < expected {
        complaints.push(format!("{successes} successes, fewer than {expected}"));
    }
    Judgment {
        successes,
        complaints,
    }
}

/// What is wrong with the way the client ended: with 0 if it was to do something, with an error of
/// its own if it was to refuse. `status` is None if it did not end by itself.
pub(super) fn judge_end(scenario: &Scenario, status: Option<&str>, said: &str) -> Option<String> {
    let Some(status) = status else {
        return Some("the client did not end by itself".to_owned());
    };
    match (scenario.refusal, status) {
        (None, "0") => None,
        (Some(because), FAILED) if said.contains(because) => None,
        (Some(because), FAILED) => {
            Some(format!("the client failed, and not because of `{because}`"))
        }
        (Some(_), "0") => Some("the client did not refuse".to_owned()),
        (_, status) => Some(format!("the client ended with {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Judgment, judge, judge_end};
    use crate::conformance::table::{Scenario, scenario};

    const SCENARIO: Scenario = Scenario {
        may_warn: &["Slow"],
        ..scenario("s", 2).requiring(&["Connected"])
    };

    #[track_caller]
    fn check(checks: &str, successes: usize, complaints: &[&str]) {
        let complaints = complaints
            .iter()
            .map(|&complaint| complaint.to_owned())
            .collect();
        assert_eq!(
            judge(&SCENARIO, checks),
            Judgment {
                successes,
                complaints
            }
        );
    }

    #[test]
    fn enough_successes_pass() {
        check(
            r#"[{"name":"Connected","status":"SUCCESS"},{"name":"Called","status":"SUCCESS"},
                {"name":"Log","status":"INFO"},{"name":"Old","status":"SKIPPED"},
                {"name":"Slow","status":"WARNING"}]"#,
            2,
            &[],
        );
    }

    #[test]
    fn no_check_at_all_does_not_pass() {
        check(
            "[]",
            0,
            &[
                "no success of the required check Connected",
                "0 successes, fewer than 2",
            ],
        );
    }

    #[test]
    fn one_failure_or_warning_among_successes_does_not_pass() {
        check(
            r#"[{"name":"Connected","status":"SUCCESS"},{"name":"Called","status":"SUCCESS"},
                {"name":"Named","status":"FAILURE","errorMessage":"no name"},
                {"name":"Timed","status":"WARNING","description":"in time"}]"#,
            2,
            &["FAILURE Named: no name", "WARNING Timed: in time"],
        );
    }

    #[test]
    fn successes_without_the_required_check_do_not_pass() {
        check(
            r#"[{"name":"A","status":"SUCCESS"},{"name":"B","status":"SUCCESS"}]"#,
            2,
            &["no success of the required check Connected"],
        );
    }

    #[test]
    fn a_status_that_nobody_knows_does_not_pass() {
        check(
            r#"[{"name":"Connected","status":"SUCCESS"},{"name":"B","status":"SUCCESS"},
                {"name":"C","status":"PASSED"}]"#,
            2,
            &[r#"C has the unknown status Some("PASSED")"#],
        );
    }

    #[test]
    fn broken_output_of_the_suite_does_not_pass() {
        check("{", 0, &["the suite's checks are not a JSON array"]);
    }

    #[test]
    fn an_excuse_is_for_one_check_that_needs_it() {
        let scenario = scenario("s", 2)
            .requiring(&["Asked", "Answered"])
            .excusing(&["Answered"]);
        let complaints = |checks| judge(&scenario, checks).complaints;
        let none: [&str; 0] = [];
        assert_eq!(
            complaints(
                r#"[{"name":"Asked","status":"SUCCESS"},{"name":"Answered","status":"FAILURE"}]"#
            ),
            none
        );
        assert_eq!(
            complaints(
                r#"[{"name":"Asked","status":"SUCCESS"},{"name":"Answered","status":"SUCCESS"}]"#
            ),
            ["Answered succeeds, and is excused from it"]
        );
        assert_eq!(
            complaints(r#"[{"name":"Answered","status":"WARNING"}]"#),
            [
                "no success of the required check Asked",
                "0 successes, fewer than 1"
            ]
        );
    }

    #[test]
    fn a_scenario_without_the_checks_of_its_way_does_not_pass() {
        let scenario = Scenario {
            way: &["Found", "Asked"],
            ..scenario("s", 1).requiring(&["Refused"])
        };
        assert_eq!(
            judge(
                &scenario,
                r#"[{"name":"Refused","status":"SUCCESS"},{"name":"Found","status":"SUCCESS"}]"#
            )
            .complaints,
            ["no success of the required check Asked"]
        );
    }

    #[track_caller]
    fn check_end(scenario: &Scenario, status: Option<&str>, said: &str, expected: Option<&str>) {
        assert_eq!(judge_end(scenario, status, said).as_deref(), expected);
    }

    #[test]
    fn a_client_that_was_to_do_something_ends_with_zero() {
        check_end(&SCENARIO, Some("0"), "", None);
        check_end(&SCENARIO, Some("1"), "", Some("the client ended with 1"));
        check_end(
            &SCENARIO,
            None,
            "",
            Some("the client did not end by itself"),
        );
    }

    #[test]
    fn a_client_that_was_to_refuse_fails_and_says_why() {
        let refusing = scenario("s", 1).refusing("another issuer");
        check_end(&refusing, Some("1"), "failed: another issuer", None);
        check_end(
            &refusing,
            Some("1"),
            "failed: no connection",
            Some("the client failed, and not because of `another issuer`"),
        );
        check_end(
            &refusing,
            Some("0"),
            "another issuer",
            Some("the client did not refuse"),
        );
        check_end(
            &refusing,
            Some("101"),
            "panicked: another issuer",
            Some("the client ended with 101"),
        );
        check_end(
            &refusing,
            None,
            "another issuer",
            Some("the client did not end by itself"),
        );
    }
}
