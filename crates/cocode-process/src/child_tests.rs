//! Confined programs on systems that are not the one of the test.

use std::error::Error as _;

use super::*;
use crate::confinement::Confinement;

#[tokio::test]
async fn a_program_that_cannot_be_confined_is_not_started() {
    let marker = std::env::temp_dir().join(format!("cocode-unconfined-{}", std::process::id()));
    let mut spec = ProcessSpec::new("/bin/sh");
    spec.args = vec!["-c".into(), r#"touch "$0""#.into(), marker.clone().into()];
    spec.confinement = Some(Confinement::read_only());
    for support in [
        Support::Missing,
        Support::SwitchedOff,
        Support::Forbidden,
        Support::OtherSystem,
        Support::Landlock { abi: 2 },
    ] {
        let error = spawn_where(&spec, || support).expect_err("it was started");
        assert_eq!(
            error.to_string(),
            "cannot start program `/bin/sh` in a sandbox"
        );
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        assert!(cause.contains("Nothing was started"), "{cause}");
    }
    assert!(!marker.exists(), "something ran unconfined");
}

#[tokio::test]
async fn a_program_that_is_not_to_be_confined_needs_no_support() {
    let spec = ProcessSpec::new("/bin/true");
    let mut child = spawn_where(&spec, || Support::Missing).expect("it is not started");
    assert!(child.wait().await.success());
}
