//! What `cocode` says where it cannot talk, and how it is told from commands.

use crate::harness::run;

const HINT: &str = "without a terminal, `cocode exec 'What is to be done'`";

#[test]
fn without_a_terminal_there_is_help_and_a_hint() {
    let finished = run::<[&str; 0], _>([]).with_code(2);
    assert_eq!(finished.stdout, "");
    finished.complains(&["Usage: cocode", "  mcp ", "--resume [<ID>]", HINT]);
    assert!(!finished.stderr.contains("code:"), "{}", finished.stderr);

    let finished = run(["--prompt", "hello"]).with_code(2);
    finished.complains(&["error: there is no command, and no terminal", HINT]);
    let error = run(["--json"]).with_code(2).error();
    assert_eq!(error["code"], "invalid-usage");
}

#[test]
fn a_word_that_is_no_command_is_said_to_be_none() {
    run(["sesions"])
        .with_code(2)
        .complains(&["unrecognized subcommand 'sesions'", "'sessions'"]);
    run(["login"])
        .with_code(2)
        .complains(&["did you mean `cocode mcp login`?"]);
}

#[test]
fn options_of_the_session_are_no_options_of_commands() {
    run(["--model", "x", "sessions", "list"])
        .with_code(2)
        .complains(&["`--model` stands before the command", "come after it"]);
    run(["--resume", "x", "--last"])
        .with_code(2)
        .complains(&["cannot be used with"]);
    // What every command understands may stand anywhere.
    run(["--quiet", "explain", "invalid-usage"]).clean();
}
