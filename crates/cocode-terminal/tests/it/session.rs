//! What a person does in a session.

use crate::tmux::{Tmux, history};

const INPUT: &str = "> ask for something, / for commands, @ for files";

fn status(n_turns: u32) -> String {
    format!("demo-1 · context {n_turns}% · servers: 2 ready, 1 failed · workspace-write")
}

fn start() -> (tempfile::TempDir, Tmux) {
    let (folder, path) = history();
    (folder, Tmux::demo(&path))
}

#[test]
fn system_text_is_typed_and_edited_and_the_answer_is_shown() {
    let (_folder, tmux) = start();
    tmux.text("say helo");
    tmux.keys(&["Left", "l", "C-a", "M-d", "Delete"]);
    tmux.wait_for("> hello");
    tmux.keys(&["Enter"]);
    tmux.wait_for_screen(&[
        "cocode demo",
        "",
        "> hello",
        "",
        "Hello",
        "",
        "This is streamed text with code, 漢字 and no harm.",
        "",
        "1. first",
        "2. second",
        "",
        "```rust",
        "fn main() {}",
        "```",
        "",
        "That is all.",
        "",
        INPUT,
        &status(1),
    ]);
    assert!(!tmux.fact("pane_title").contains("owned"));
}

#[test]
fn system_commands_and_files_are_completed() {
    let (_folder, tmux) = start();
    tmux.text("/");
    tmux.wait_for("› /ask      a question of a server");
    tmux.keys(&["Down", "Down", "Down"]);
    tmux.wait_for("› /help");
    tmux.keys(&["Enter"]);
    tmux.wait_for_screen(&["cocode demo", "", "> /help", &status(0)]);
    tmux.keys(&["Enter"]);
    tmux.wait_for("Say hello, work, edit, wait or anything else.");

    tmux.text("/hel");
    tmux.wait_for("› /help");
    tmux.keys(&["Enter"]);
    tmux.wait_until("two answers", |screen| {
        screen.matches("Say hello, work, edit").count() == 2
    });

    tmux.text("see @lib");
    tmux.wait_for("› @src/lib.rs");
    tmux.keys(&["Tab"]);
    tmux.wait_for("> see @src/lib.rs");
    tmux.wait_until_gone("›");
    tmux.text("and @src");
    tmux.wait_for("› @src/app.rs");
    tmux.keys(&["Escape"]);
    let screen = tmux.wait_until_gone("›");
    assert!(screen.contains("> see @src/lib.rs and @src"), "{screen}");
}

#[test]
fn system_a_list_is_picked_from() {
    let (_folder, tmux) = start();
    tmux.enter("/servers");
    tmux.wait_for("› files   ready");
    tmux.text("br");
    tmux.wait_for("\"br\" matches 1");
    tmux.keys(&["Enter"]);
    tmux.wait_for("broken was restarted");
    tmux.wait_for("servers: 3 ready");
    tmux.enter("/ask");
    tmux.wait_for("What is your name?");
    tmux.wait_for("Enter answers, Esc does not");
    tmux.text("Grace");
    tmux.keys(&["Enter"]);
    tmux.wait_for("The name is Grace.");
    tmux.enter("/resume");
    tmux.wait_for("> an old question");
    tmux.wait_for("An old answer.");
    tmux.enter("/nonsense");
    tmux.wait_for("✗ there is no command `/nonsense`");
}

#[test]
fn system_calls_show_how_far_they_are_and_text_waits_for_the_end_of_the_turn() {
    let (_folder, tmux) = start();
    tmux.enter("work");
    tmux.wait_for("◌ shell cargo test");
    tmux.wait_for("  ██████████░░░░░░░░░░  50% compiling");
    tmux.wait_for("  ██████████████░░░░░░  70% looking");
    tmux.enter("later");
    tmux.wait_for("next: later");
    tmux.enter("/go");
    tmux.wait_for("Lines: 1, characters: 5.");
    tmux.wait_for_screen(&[
        "cocode demo",
        "",
        "> work",
        "",
        "Two calls.",
        "",
        "> /go",
        "",
        "● mcp__files__search needle",
        "  a.rs:1",
        "  b.rs:2",
        "",
        "● shell cargo test",
        "  test 1 ... ok",
        "  test 2 ... ok",
        "  test 3 ... ok",
        "  test 4 ... ok",
        "  … 5 more lines",
        "",
        "Both are done.",
        "",
        "> later",
        "",
        "Lines: 1, characters: 5.",
        "",
        INPUT,
        &status(2),
    ]);
}

#[test]
fn system_a_call_is_allowed_or_refused_with_a_reason_or_stopped() {
    const KEYS: &str = "  y yes  a always  n no, and why  Esc stop the turn";
    let (_folder, tmux) = start();
    tmux.enter("edit");
    let screen = tmux.wait_for(KEYS);
    for part in [
        "waiting for your answer",
        "? May edit be called?\n  edit a.rs\n  asked because edits are asked about",
        "  the model says: The number is wrong.\n  - let x = 1;\n  + let x = 2;",
    ] {
        assert!(screen.contains(part), "{part}\n{screen}");
    }
    tmux.keys(&["y"]);
    tmux.wait_for_screen(&[
        "cocode demo",
        "",
        "> edit",
        "",
        "An edit.",
        "",
        "? edit: edit a.rs — allowed",
        "",
        "● edit a.rs",
        "  - let x = 1;",
        "  + let x = 2;",
        "",
        "Edited.",
        "",
        INPUT,
        &status(1),
    ]);

    tmux.enter("edit");
    tmux.wait_for(KEYS);
    tmux.keys(&["n"]);
    tmux.wait_for("What should the model be told?");
    tmux.text("a typo");
    tmux.wait_for("  > a typo");
    tmux.keys(&["Enter"]);
    tmux.wait_for("? edit: edit a.rs — refused: a typo");
    tmux.wait_for("Refused, because of a typo.");
    tmux.wait_until_idle();

    tmux.enter("edit");
    tmux.wait_for(KEYS);
    tmux.keys(&["Escape"]);
    tmux.wait_for("? edit: edit a.rs — stopped");
    tmux.wait_for("■ interrupted");
}

#[test]
fn system_a_turn_is_interrupted_and_what_waited_comes_back() {
    let (_folder, tmux) = start();
    tmux.enter("wait");
    tmux.wait_for("Waiting until somebody interrupts.");
    tmux.enter("for later");
    tmux.wait_for("next: for later");
    tmux.keys(&["C-c"]);
    tmux.wait_for_screen(&[
        "cocode demo",
        "",
        "> wait",
        "",
        "Waiting until somebody interrupts.",
        "",
        "■ interrupted  what was done until then stays done",
        "",
        "> for later",
        &status(1),
    ]);
    tmux.keys(&["C-c"]);
    tmux.wait_for(INPUT);
    tmux.keys(&["C-y"]);
    tmux.wait_for("> for later");
}

#[test]
fn system_nothing_is_lost_or_doubled_when_the_size_changes() {
    let (_folder, tmux) = start();
    tmux.enter("many");
    tmux.wait_for("60. line 60");
    tmux.wait_until_idle();
    tmux.text(&"word ".repeat(30));
    // One word is broken by the end of the row.
    tmux.wait_until("whole text", |screen| screen.matches("word").count() == 29);
    for (columns, rows) in [(60, 30), (60, 12), (120, 40), (35, 20), (100, 30)] {
        tmux.resize(columns, rows);
        let wanted = usize::from(columns);
        // The status line is drawn for the new size: it is as long as fits.
        tmux.wait_until("drawing for the new size", |screen| {
            let last = screen.lines().next_back().unwrap_or_default();
            let is_whole = last == status(1);
            let input = screen.lines().filter(|line| line.contains("word"));
            let widest = input.map(str::len).max().unwrap_or_default();
            let is_drawn = widest < wanted && widest + 3 > wanted;
            (is_whole == (wanted > status(1).chars().count())) && is_drawn
        });
    }
    tmux.keys(&["C-c"]);
    tmux.wait_for(INPUT);
    let all = tmux.scrollback();
    for n in 1..=60 {
        let line = format!("{n}. line {n}");
        let count = all.lines().filter(|found| *found == line).count();
        assert_eq!(count, 1, "{line}\n{all}");
    }
    assert!(!all.contains("word"), "{all}");
    assert_eq!(all.matches("demo-1 ·").count(), 1, "{all}");
}

#[test]
fn system_a_terminal_that_is_emptied_keeps_its_scrollback() {
    let (_folder, tmux) = start();
    tmux.enter("hello");
    tmux.wait_for("That is all.");
    tmux.wait_until_idle();
    tmux.enter("/clear");
    tmux.wait_for_screen(&[INPUT, &status(1)]);
    tmux.enter("hello");
    tmux.wait_for("That is all.");
    tmux.wait_until_idle();
    tmux.keys(&["C-l"]);
    tmux.wait_for_screen(&[INPUT, &status(2)]);
    let all = tmux.scrollback();
    assert_eq!(all.matches("That is all.").count(), 2, "{all}");
    assert_eq!(all.matches(INPUT).count(), 1, "{all}");
}

#[test]
fn system_a_paste_of_many_lines_is_one_message() {
    let (_folder, tmux) = start();
    tmux.paste("two\nlines");
    tmux.wait_for("> two\n  lines");
    tmux.keys(&["C-c"]);
    tmux.wait_for(INPUT);
    tmux.text("look: ");
    tmux.paste(&"line\n".repeat(120));
    tmux.wait_for("> look: [pasted 120 lines #1]");
    tmux.keys(&["Enter"]);
    tmux.wait_for_screen(&[
        "cocode demo",
        "",
        "> look: [pasted 120 lines #1]",
        "",
        "Lines: 120, characters: 605.",
        "",
        INPUT,
        &status(1),
    ]);
}

#[test]
fn system_wide_characters_stand_where_they_belong() {
    let (_folder, tmux) = start();
    tmux.text("漢字かな");
    tmux.keys(&["Left", "Left", "x"]);
    tmux.wait_for("> 漢字xかな");
    assert_eq!(tmux.fact("cursor_x"), "7");
    tmux.keys(&["BSpace", "BSpace"]);
    tmux.wait_for("> 漢かな");
    assert_eq!(tmux.fact("cursor_x"), "4");
}

#[test]
fn system_what_was_typed_is_there_in_the_next_session() {
    let (_folder, path) = history();
    let tmux = Tmux::demo(&path);
    tmux.enter("first");
    tmux.wait_for("Lines: 1, characters: 5.");
    tmux.wait_until_idle();
    tmux.enter("second one");
    tmux.wait_for("Lines: 1, characters: 10.");
    tmux.wait_until_idle();
    tmux.keys(&["C-d"]);
    tmux.wait_for("ended with 0");
    let next = Tmux::demo(&path);
    next.text("draft");
    next.wait_for("> draft");
    next.keys(&["Up"]);
    next.wait_for("> second one");
    next.keys(&["Up"]);
    next.wait_for("> first");
    next.keys(&["Down", "Down"]);
    next.wait_for("> draft");
    next.keys(&["C-r"]);
    next.text("eco");
    next.wait_for("search: eco second one");
    next.keys(&["Enter"]);
    next.wait_for("> second one");
}
