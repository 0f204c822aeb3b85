//! Errors as people and scripts see them.

use super::{CliError, Exit, RpcDetails};

fn sample() -> CliError {
    let mut error = CliError::with(Exit::Server, "server-exited", "cannot connect to `x`")
        .because(&std::io::Error::other("broken\u{1b}[2J"))
        .hint("look again");
    error.stderr = vec!["boom".into()];
    error.noise = vec!["Listening…".into()];
    error
}

#[test]
fn people_see_causes_last_words_hints_and_the_page() {
    assert_eq!(
        sample().to_lines(),
        [
            "cannot connect to `x`",
            "  caused by: broken\u{fffd}[2J",
            "  the server sent lines that are no messages:",
            "    | Listening…",
            "  the last lines that the server wrote to stderr:",
            "    | boom",
            "  hint: look again",
            "  code: server-exited (cocode explain server-exited)",
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
        r#"{"error":{"code":"server-exited","message":"cannot connect to `x`","causes":["broken\u001b[2J"],"hints":["look again"],"exit":3,"rpc":{"code":-5,"message":"no","data":1.10},"stderr":["boom"],"noise":["Listening…"]}}"#
    );
}
