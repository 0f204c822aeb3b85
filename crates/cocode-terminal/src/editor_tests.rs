//! The input line, key by key.

use super::*;

const COLUMNS: usize = 20;

fn key(name: &str) -> KeyEvent {
    let (modifiers, name) = match name.split_once('-') {
        Some(("C", rest)) => (KeyModifiers::CONTROL, rest),
        Some(("M", rest)) => (KeyModifiers::ALT, rest),
        Some(("S", rest)) => (KeyModifiers::SHIFT, rest),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match name {
        "enter" => KeyCode::Enter,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        other => KeyCode::Char(other.chars().next().unwrap()),
    };
    KeyEvent::new(code, modifiers)
}

/// The text with the cursor as `|`, after keys on a text with a cursor given the same way.
fn after(given: &str, keys: &[&str]) -> String {
    let mut editor = Editor::default();
    let (before, behind) = given.split_once('|').unwrap();
    editor.insert(before);
    editor.insert(behind);
    editor.cursor = before.len();
    for name in keys {
        editor.key(key(name), COLUMNS);
    }
    let mut text = editor.text.clone();
    text.insert(editor.cursor, '|');
    text
}

#[test]
fn keys_move_the_cursor() {
    for (given, keys, expected) in [
        ("abc|", &["left", "left"][..], "a|bc"),
        ("e\u{301}👩‍👩‍👧|", &["left"], "e\u{301}|👩‍👩‍👧"),
        ("e\u{301}|", &["left"], "|e\u{301}"),
        ("one two-three|", &["M-b"], "one two-|three"),
        ("one two-three|", &["C-left", "M-left"], "one |two-three"),
        ("|one two", &["M-f"], "one| two"),
        ("one| two", &["C-right"], "one two|"),
        ("a\nbc|d\ne", &["C-a"], "a\n|bcd\ne"),
        ("a\nb|cd\ne", &["end"], "a\nbcd|\ne"),
        ("a\nbc|d", &["home", "left"], "a|\nbcd"),
        ("|a", &["left", "C-b"], "|a"),
        ("a|", &["right", "C-f", "M-f"], "a|"),
    ] {
        assert_eq!(after(given, keys), expected, "{given} {keys:?}");
    }
}

#[test]
fn keys_change_the_text() {
    for (given, keys, expected) in [
        ("ac|", &["left", "b"][..], "ab|c"),
        ("abc|", &["backspace", "C-h"], "a|"),
        ("👩‍👩‍👧|", &["backspace"], "|"),
        ("|abc", &["delete", "C-d"], "|c"),
        ("one two|", &["C-w", "C-y", "C-y"], "one twotwo|"),
        ("ab /x/y|", &["C-w"], "ab |"),
        ("ab /x/y|", &["M-backspace"], "ab /x/|"),
        ("a b|c d", &["C-k", "C-a", "C-y"], "c d|a b"),
        ("a|\nb", &["C-k"], "a|b"),
        ("x\nab|c", &["C-u"], "x\n|c"),
        ("|one two", &["M-d"], "| two"),
        ("a|", &["M-enter", "b"], "a\nb|"),
        ("a|", &["S-enter", "C-j"], "a\n\n|"),
        ("a\\|", &["enter", "b"], "a\nb|"),
    ] {
        assert_eq!(after(given, keys), expected, "{given} {keys:?}");
    }
}

#[test]
fn up_and_down_keep_the_column_and_know_rows_that_are_broken() {
    assert_eq!(after("abcd\nx\nabcd|", &["up", "up"]), "abcd|\nx\nabcd");
    assert_eq!(after("ab|cd\nx\nabcd", &["down", "down"]), "abcd\nx\nab|cd");
    let long = "0123456789012345678901234|";
    assert_eq!(after(long, &["up"]), "01234|56789012345678901234");
    assert_eq!(after("漢字漢\nabcd|", &["up"]), "漢字|漢\nabcd");
}

#[test]
fn up_before_the_first_row_and_down_after_the_last_are_told() {
    let mut editor = Editor::default();
    editor.insert("a\nb");
    assert_eq!(editor.key(key("down"), COLUMNS), Took::AfterLast);
    assert_eq!(editor.key(key("up"), COLUMNS), Took::Moved);
    assert_eq!(editor.key(key("up"), COLUMNS), Took::BeforeFirst);
    assert_eq!(editor.key(key("enter"), COLUMNS), Took::Submitted);
}

#[test]
fn short_pastes_are_text_and_long_ones_are_folded() {
    let mut editor = Editor::default();
    editor.paste("two\r\nlines\rthree\u{1b}[31m");
    assert_eq!(editor.text(), "two\nlines\nthree[31m");

    editor.set("look: ");
    let long = "line\n".repeat(120);
    editor.paste(&long);
    editor.insert(" and ");
    editor.paste(&"x".repeat(5000));
    assert_eq!(
        editor.text(),
        "look: [pasted 120 lines #1] and [pasted 5000 characters #2]"
    );
    editor.key(key("backspace"), COLUMNS);
    assert_eq!(editor.text(), "look: [pasted 120 lines #1] and ");
    assert_eq!(editor.take(), format!("look: {long} and "));
    assert!(editor.is_empty());
}

#[test]
fn what_was_cleared_can_be_put_back() {
    let mut editor = Editor::default();
    editor.insert("long thought");
    editor.clear();
    assert!(editor.is_empty());
    editor.key(key("C-y"), COLUMNS);
    assert_eq!(editor.text(), "long thought");
}

#[test]
fn the_layout_has_the_cursor_where_the_next_character_goes() {
    let layout = |text: &str, columns: usize| {
        let mut editor = Editor::default();
        editor.insert(text);
        let layout = editor.layout(columns);
        (layout.rows, layout.cursor)
    };
    assert_eq!(layout("", 4), (vec![String::new()], (0, 0)));
    assert_eq!(
        layout("abcd", 4),
        (vec!["abcd".into(), String::new()], (1, 0))
    );
    assert_eq!(
        layout("abc漢", 4),
        (vec!["abc".into(), "漢".into()], (1, 2))
    );
    assert_eq!(layout("a\n", 4), (vec!["a".into(), String::new()], (1, 0)));
    assert_eq!(layout("\tx", 9), (vec!["    x".into()], (0, 5)));
}

#[test]
fn the_input_has_a_bound() {
    let mut editor = Editor::default();
    editor.insert(&"ä".repeat(MAX_INPUT_BYTES));
    editor.insert("more");
    assert!(editor.text().len() <= MAX_INPUT_BYTES);
}
