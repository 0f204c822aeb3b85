//! Errors as people and scripts see them, and a page for each code.

use std::collections::BTreeSet;
use std::path::Path;

use super::{CliError, Code, Exit, RpcDetails};

fn sample() -> CliError {
    let mut error = CliError::with(Exit::Server, "server-exited", "cannot connect to `x`")
        .because(&std::io::Error::other("broken\u{1b}[2J"))
        .hint("look again");
    error.stderr = vec!["boom".into()];
    error
}

#[test]
fn people_see_causes_last_words_hints_and_the_page() {
    assert_eq!(
        sample().to_lines(),
        [
            "cannot connect to `x`",
            "  caused by: broken\u{fffd}[2J",
            "  the last lines that the server wrote to stderr:",
            "    | boom",
            "  hint: look again",
            "  code: server-exited, see docs/errors/server-exited.md",
        ]
    );
}

#[test]
fn scripts_see_one_object() {
    let mut error = sample();
    let data = serde_json::value::RawValue::from_string("1.10".into()).unwrap();
    error.rpc = Some(Box::new(RpcDetails {
        code: -5,
        message: "no".into(),
        data: Some(data),
    }));
    assert_eq!(
        error.to_json(),
        r#"{"error":{"code":"server-exited","message":"cannot connect to `x`","causes":["broken\u001b[2J"],"hints":["look again"],"exit":3,"rpc":{"code":-5,"message":"no","data":1.10},"stderr":["boom"]}}"#
    );
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let own = Code::ALL.map(Code::as_str);
    let codes: BTreeSet<&str> = own.into_iter().chain(cocode_client::ERROR_CODES).collect();
    let index = std::fs::read_to_string(directory.join("README.md")).unwrap();
    for code in &codes {
        let page = std::fs::read_to_string(directory.join(format!("{code}.md")));
        let page = page.unwrap_or_else(|error| panic!("docs/errors/{code}.md: {error}"));
        assert!(
            page.starts_with(&format!("# {code}\n")),
            "{code}.md has another title"
        );
        for section in ["## What happened", "## Usual causes", "## What to do"] {
            assert!(page.contains(section), "{code}.md lacks `{section}`");
        }
        assert!(
            index.contains(&format!("({code}.md)")),
            "the index lacks {code}"
        );
    }
    for entry in std::fs::read_dir(&directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let code = name.strip_suffix(".md").unwrap_or(&name);
        assert!(
            code == "README" || codes.contains(code),
            "no error has the code {code}"
        );
    }
}
