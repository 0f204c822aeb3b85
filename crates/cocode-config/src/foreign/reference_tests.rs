//! What references become, in both directions.

use std::path::Path;

use proptest::prelude::*;

use super::{Dialect, Reason, Secrets, export, import};
use crate::expand::{expand_plain, variables_of};

const DIALECTS: [Dialect; 5] = [
    Dialect::Plain,
    Dialect::Shell,
    Dialect::Dollar,
    Dialect::Editor,
    Dialect::Braces,
];

fn imported(text: &str, dialect: Dialect) -> Result<String, Reason> {
    let project = Path::new("/src/project");
    let (text, _) = import(text, dialect, Secrets::Allowed, Some(project))?;
    Ok(text)
}

fn ours(text: &str, dialect: Dialect) -> String {
    imported(text, dialect).unwrap_or_else(|Reason(reason)| format!("refused: {reason}"))
}

#[test]
fn each_spelling_of_a_variable_becomes_ours() {
    assert_eq!(ours("a ${X} b", Dialect::Shell), "a ${X} b");
    assert_eq!(ours("${X:-d e}", Dialect::Shell), "${X:-d e}");
    assert_eq!(ours("$X/${Y}$1", Dialect::Dollar), "${X}/${Y}$1");
    assert_eq!(ours("${env:X}", Dialect::Editor), "${X}");
    assert_eq!(ours("${userHome}/x", Dialect::Editor), "${HOME}/x");
    assert_eq!(ours("a{env:X}", Dialect::Braces), "a${X}");
}

#[test]
fn text_that_a_tool_does_not_expand_is_not_expanded_here_either() {
    for (text, dialect) in [
        ("${X}", Dialect::Plain),
        ("{env:X} $X", Dialect::Plain),
        ("$X", Dialect::Shell),
        ("${not a name}", Dialect::Shell),
        ("${X}", Dialect::Editor),
        ("${X} $X", Dialect::Braces),
        ("${env:X}", Dialect::Shell),
        ("a $${b", Dialect::Plain),
        ("${cmd:date}", Dialect::Shell),
    ] {
        let ours = ours(text, dialect);
        let expanded = expand_plain(&ours, &|_| Some("expanded".to_owned()));
        assert_eq!(expanded.as_deref(), Ok(text), "{ours}");
    }
}

#[test]
fn what_only_an_editor_knows_is_looked_up_or_refused() {
    assert_eq!(
        ours("${workspaceFolder}${/}x", Dialect::Editor),
        "/src/project/x"
    );
    assert_eq!(
        ours("${workspaceFolderBasename}", Dialect::Editor),
        "project"
    );
    assert!(imported("${config:python.path}", Dialect::Editor).is_err());
    assert!(imported("{file:./token}", Dialect::Braces).is_err());
    let nowhere = import("${workspaceFolder}", Dialect::Editor, Secrets::None, None);
    assert!(nowhere.is_err());
}

#[test]
fn what_an_editor_asks_for_becomes_a_variable() {
    let found = import(
        "Bearer ${input:api-key}",
        Dialect::Editor,
        Secrets::None,
        None,
    );
    let asked = vec![("api-key".to_owned(), "API_KEY".to_owned())];
    assert_eq!(found, Ok(("Bearer ${API_KEY}".to_owned(), asked)));
    assert_eq!(ours("${input:2nd}", Dialect::Editor), "${INPUT_2ND}");
}

#[test]
fn text_that_would_run_a_command_or_read_a_secret_here_is_refused() {
    for text in ["cmd:rm -r x", "keyring:token"] {
        for dialect in DIALECTS {
            assert!(imported(text, dialect).is_err(), "{text}");
        }
    }
}

#[test]
fn secrets_never_go_to_a_tool() {
    for text in ["cmd:pass show x", "keyring:x", "a ${keyring:x}", "${cmd:x}"] {
        for dialect in DIALECTS {
            assert!(export(text, dialect, Secrets::Allowed).is_err(), "{text}");
        }
    }
}

#[test]
fn variables_go_out_in_the_spelling_of_the_tool() {
    let theirs = |text: &str, dialect| export(text, dialect, Secrets::Allowed).ok();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(theirs("a ${X}", Dialect::Shell), some("a ${X}"));
    assert_eq!(theirs("${X:-d}", Dialect::Dollar), some("${X:-d}"));
    assert_eq!(theirs("${X}", Dialect::Editor), some("${env:X}"));
    assert_eq!(theirs("${X}", Dialect::Braces), some("{env:X}"));
    assert_eq!(theirs("${X}", Dialect::Plain), None);
    assert_eq!(theirs("${X:-d}", Dialect::Editor), None);
    assert_eq!(theirs("${X:-${Y}}", Dialect::Shell), None);
    // A plain text that the tool would take for a reference has no spelling there.
    assert_eq!(theirs("$${X}", Dialect::Shell), None);
    assert_eq!(theirs("$${X}", Dialect::Plain), some("${X}"));
    assert_eq!(theirs("{env:X}", Dialect::Braces), None);
    assert_eq!(theirs("cost: $5", Dialect::Dollar), some("cost: $5"));
    assert_eq!(theirs("cost: $FIVE", Dialect::Dollar), None);
}

fn any_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("$".to_owned()),
        Just("${".to_owned()),
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("{env:".to_owned()),
        Just("env:".to_owned()),
        Just(":-".to_owned()),
        Just("NAME".to_owned()),
        Just("cmd:".to_owned()),
        Just("keyring:".to_owned()),
        "[a-z ü:]{0,4}",
    ];
    prop::collection::vec(part, 0..9).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever a tool wrote: if it comes in, it goes back out to the same meaning.
    #[test]
    fn what_comes_in_means_the_same_when_it_goes_out(text in any_text(), which in 0..5_usize) {
        let dialect = DIALECTS[which];
        if let Ok(ours) = imported(&text, dialect)
            && let Ok(theirs) = export(&ours, dialect, Secrets::Allowed)
        {
            prop_assert_eq!(imported(&theirs, dialect), Ok(ours));
        }
    }

    /// Whatever we wrote: if it goes out, it comes back as it was.
    #[test]
    fn what_goes_out_comes_back_as_it_was(text in any_text(), which in 0..5_usize) {
        let dialect = DIALECTS[which];
        if let Ok(theirs) = export(&text, dialect, Secrets::Allowed) {
            prop_assert_eq!(imported(&theirs, dialect), Ok(text));
        }
    }

    /// What comes in can be expanded, asks for nothing but variables, and names no secret.
    #[test]
    fn what_comes_in_can_be_expanded(text in any_text(), which in 0..5_usize) {
        if let Ok(ours) = imported(&text, DIALECTS[which]) {
            let expanded = expand_plain(&ours, &|_| Some("value".to_owned()));
            prop_assert!(expanded.is_ok(), "{}", ours);
            if which == 0 {
                prop_assert!(variables_of(&ours).is_empty(), "{}", ours);
                prop_assert_eq!(expanded, Ok(text));
            }
        }
    }
}
