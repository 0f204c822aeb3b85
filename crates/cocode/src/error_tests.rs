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

/// An error with what caused it, outermost first.
#[derive(Debug)]
struct Chain(&'static str, Option<Box<Self>>);

impl Chain {
    fn of(texts: &[&'static str]) -> Option<Box<Self>> {
        let (first, rest) = texts.split_first()?;
        Some(Box::new(Self(first, Self::of(rest))))
    }
}

impl std::fmt::Display for Chain {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.0)
    }
}

impl std::error::Error for Chain {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.1.as_deref().map(|cause| cause as _)
    }
}

#[test]
fn causes_that_say_nothing_new_are_left_out() {
    for (chain, expected) in [
        (
            &[
                "cannot reach x",
                "error sending request for url (x)",
                "client error (Connect)",
                "tcp connect error",
                "refused",
            ][..],
            &["cannot reach x", "refused"][..],
        ),
        (&["not read: broken", "broken"], &["not read: broken"]),
        // The last cause is the only one there is.
        (&["client error (Connect)"], &["client error (Connect)"]),
    ] {
        let error = Chain::of(chain).unwrap();
        let told = CliError::with(Exit::Server, "unreachable", "no").because(&*error);
        assert_eq!(told.causes, expected);
    }
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
