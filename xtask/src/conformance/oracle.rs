//! Judges the checks that one scenario wrote. Knows nothing of processes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::table::Scenario;

/// What a judged scenario showed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Judgment {
    pub(super) successes: usize,
    /// Why the scenario does not pass; empty when it does.
    pub(super) complaints: Vec<String>,
}

/// Reads the suite's `checks.json`: no failure, no warning but the listed ones, every required
/// check and no fewer successes than pinned.
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
            // Logs of the suite, and checks that the revision does not have.
            Some("INFO" | "SKIPPED") => {}
            Some(status @ ("FAILURE" | "WARNING")) => {
                complaints.push(format!("{status} {name}: {message}"));
            }
            status => complaints.push(format!("{name} has the unknown status {status:?}")),
        }
    }
    for required in scenario
        .required
        .iter()
        .filter(|name| !succeeded.contains(**name))
    {
        complaints.push(format!("no success of the required check {required}"));
    }
    if successes < scenario.successes {
        complaints.push(format!(
            "{successes} successes, fewer than {}",
            scenario.successes
        ));
    }
    Judgment {
        successes,
        complaints,
    }
}

#[cfg(test)]
mod tests {
    use super::{Judgment, judge};
    use crate::conformance::table::Scenario;

    const SCENARIO: Scenario = Scenario {
        name: "s",
        successes: 2,
        required: &["Connected"],
        may_warn: &["Slow"],
        alone: false,
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
}
