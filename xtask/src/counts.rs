//! Counts of tests, and how they are read from nextest's `JUnit` report and rustdoc's test output.

use std::fmt;
use std::ops::AddAssign;

/// Tests that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed } = self;
        write!(formatter, "{passed} passed, {failed} failed")
    }
}

/// Reads the totals from the root element of a `JUnit` report.
pub(crate) fn from_junit(report: &str) -> Option<Counts> {
    let (_, root) = report.split_once("<testsuites ")?;
    let (attributes, _) = root.split_once('>')?;
    let number = |name: &str| -> Option<usize> {
        let (_, value) = attributes.split_once(&format!("{name}=\""))?;
        value.split_once('"')?.0.parse().ok()
    };
    let failed = number("failures")? + number("errors")?;
    Some(Counts {
        passed: number("tests")?.checked_sub(failed)?,
        failed,
    })
}

/// Adds up the `test result:` lines that the standard test harness prints, one per crate.
pub(crate) fn from_test_results(output: &str) -> Counts {
    let mut counts = Counts::default();
    for line in output.lines() {
        let Some(result) = line.trim_start().strip_prefix("test result:") else {
            continue;
        };
        let number = |label: &str| -> usize {
            result
                .split(['.', ';'])
                .find_map(|part| part.trim().strip_suffix(label)?.trim().parse().ok())
                .unwrap_or(0)
        };
        counts += Counts {
            passed: number("passed"),
            failed: number("failed"),
        };
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::{Counts, from_junit, from_test_results};

    #[test]
    fn junit_root_gives_the_totals() {
        let report = r#"<?xml version="1.0"?>
<testsuites name="nextest-run" tests="12" failures="2" errors="1" uuid="x" time="1.5">
    <testsuite name="a" tests="5" disabled="0" errors="0" failures="0">"#;
        assert_eq!(
            from_junit(report),
            Some(Counts {
                passed: 9,
                failed: 3
            })
        );
    }

    #[test]
    fn anything_but_a_junit_report_gives_nothing() {
        for report in [
            "",
            "<testsuites>",
            r#"<testsuites tests="1" failures="2" errors="0">"#,
        ] {
            assert_eq!(from_junit(report), None, "{report}");
        }
    }

    #[test]
    fn results_of_all_crates_are_added() {
        let output = "\nrunning 2 tests\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s\n\
            test result: FAILED. 10 passed; 3 failed; 0 ignored; 0 measured\n";
        assert_eq!(
            from_test_results(output),
            Counts {
                passed: 12,
                failed: 3
            }
        );
    }

    #[test]
    fn closing_line_reads_as_documented() {
        assert_eq!(
            Counts {
                passed: 3,
                failed: 0
            }
            .to_string(),
            "3 passed, 0 failed"
        );
    }
}
