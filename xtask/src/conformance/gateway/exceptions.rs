//! What cannot be had on some legs, check by check, each for a written reason. A check that
//! succeeds all the same fails the run: then its exception has to go.

use super::legs::Leg;
use crate::conformance::table::{Run, Scenario};

struct Exception {
    /// Names of legs.
    legs: &'static [&'static str],
    scenario: &'static str,
    /// Names of required checks.
    checks: &'static [&'static str],
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        legs: &["stdio", "http", "modern-stdio", "modern-http"],
        scenario: "server-sse-polling",
        checks: &["ServerDisconnectResume"],
        reason: "the stream that the fixture closes is the one to the gateway, if there is one; \
                 the gateway keeps its own open and answers there",
    },
    Exception {
        legs: &["legacy-stdio", "legacy-http"],
        scenario: "input-required-result-basic-elicitation",
        checks: &[
            "InputRequiredResultElicitationIncomplete",
            "InputRequiredResultElicitationComplete",
        ],
        reason: "the suite wants the question under the key `user_name`; the request of a server \
                 of the older era has no key, and the gateway chooses one",
    },
    Exception {
        legs: &["legacy-stdio", "legacy-http"],
        scenario: "input-required-result-ignore-extra-params",
        checks: &["IgnoreUnexpectedParams"],
        reason: "the suite answers before it was asked; a server of the older era asks in the \
                 middle of its work, and cannot be told before",
    },
];

/// The scenario with what is excused on this leg.
pub(super) fn applied(leg: &Leg, scenario: &Scenario) -> Scenario {
    let found = EXCEPTIONS.iter().find(|exception| {
        exception.scenario == scenario.name && exception.legs.contains(&leg.name)
    });
    found.map_or(*scenario, |exception| scenario.excusing(exception.checks))
}

/// Names all exceptions.
pub(super) fn say() {
    for exception in EXCEPTIONS {
        println!(
            "excused: {} of {} ({}): {}",
            exception.checks.join(" "),
            exception.scenario,
            exception.legs.join(" "),
            exception.reason
        );
    }
}

/// How a run on a leg is called, for people.
pub(super) fn place_of(leg: &Leg, label: &str, run: &Run) -> String {
    format!("{}: {label} at {run}", leg.name)
}

#[cfg(test)]
mod tests {
    use super::EXCEPTIONS;
    use crate::conformance::gateway::legs::{DIRECT, LEGS, Leg};
    use crate::conformance::table::{Run, SERVER_SUITES};

    #[test]
    fn exceptions_are_for_required_checks_of_legs_with_a_gateway() {
        for exception in EXCEPTIONS {
            for name in exception.legs {
                let leg: &Leg = LEGS.iter().find(|leg| leg.name == *name).expect("a leg");
                assert_ne!(leg.name, DIRECT, "nothing is excused of the fixture itself");
                let scenario = SERVER_SUITES
                    .iter()
                    .flat_map(|suite| suite.runs)
                    .filter(|run| leg.drives(run))
                    .flat_map(Run::scenarios)
                    .find(|scenario| scenario.name == exception.scenario)
                    .expect("a scenario that the leg runs");
                for check in exception.checks {
                    assert!(scenario.required.contains(check), "{check}");
                }
            }
        }
    }

    #[test]
    fn no_scenario_has_two_exceptions_on_a_leg() {
        for (index, exception) in EXCEPTIONS.iter().enumerate() {
            for other in EXCEPTIONS.iter().skip(index + 1) {
                let shared = |leg: &&&str| other.legs.contains(*leg);
                let both = exception.legs.iter().find(shared);
                assert!(
                    exception.scenario != other.scenario || both.is_none(),
                    "{} on {both:?}",
                    exception.scenario
                );
            }
        }
    }
}
