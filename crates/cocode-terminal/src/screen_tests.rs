//! The screen, as a terminal that understands its bytes shows it.

use super::*;
use crate::style::Style;
use crate::virtual_terminal::Terminal;

fn start(columns: u16, rows: u16) -> (Terminal, Screen<Terminal>) {
    let terminal = Terminal::new(columns, rows);
    let size = Size { columns, rows };
    (
        terminal.clone(),
        Screen::new(terminal, size, Palette::Color),
    )
}

fn live(rows: &[&str], cursor: (usize, usize)) -> Live {
    Live {
        rows: rows.iter().map(|row| Line::plain(row)).collect(),
        cursor: Some(cursor),
    }
}

#[test]
fn finished_lines_stand_above_the_live_area() {
    let (terminal, mut screen) = start(20, 8);
    screen.draw(live(&["status", "> hi"], (1, 4))).unwrap();
    assert_eq!(terminal.shown(), ["status", "> hi"]);
    assert_eq!(terminal.cursor(), (1, 4));

    screen.print(Line::plain("one"));
    screen.print(Line::new("two", Style::PLAIN.bold()));
    screen.draw(live(&["status", "> hi!"], (1, 5))).unwrap();
    assert_eq!(terminal.shown(), ["one", "two", "status", "> hi!"]);
    assert_eq!(terminal.cursor(), (3, 5));
}

#[test]
fn what_no_longer_fits_is_in_the_scrollback_once_and_in_order() {
    let (terminal, mut screen) = start(20, 5);
    for n in 0..30 {
        screen.print(Line::plain(&format!("line {n}")));
        screen.draw(live(&["busy", "more", "> x"], (2, 3))).unwrap();
    }
    assert_eq!(
        terminal.shown(),
        ["line 28", "line 29", "busy", "more", "> x"]
    );
    let mut all = Vec::new();
    for back in (1..=28).rev() {
        all.push(terminal.scrolled_back(back).first().cloned().unwrap());
    }
    let expected: Vec<String> = (0..28).map(|n| format!("line {n}")).collect();
    assert_eq!(all, expected);
}

#[test]
fn a_long_finished_line_is_broken_by_the_terminal() {
    let (terminal, mut screen) = start(10, 6);
    screen.print(Line::plain("0123456789abcde"));
    screen.draw(live(&["> x"], (0, 3))).unwrap();
    assert_eq!(terminal.shown(), ["0123456789", "abcde", "> x"]);
    screen.print(Line::plain("next"));
    screen.draw(live(&["> y"], (0, 3))).unwrap();
    assert_eq!(terminal.shown(), ["0123456789", "abcde", "next", "> y"]);
}

#[test]
fn the_live_area_grows_and_shrinks() {
    let (terminal, mut screen) = start(20, 6);
    screen.print(Line::plain("said"));
    screen.draw(live(&["a", "b", "c", "> "], (3, 2))).unwrap();
    assert_eq!(terminal.shown(), ["said", "a", "b", "c", ">"]);
    screen.draw(live(&["> "], (0, 2))).unwrap();
    assert_eq!(terminal.shown(), ["said", ">"]);
    assert_eq!(terminal.cursor(), (1, 2));
    screen.draw(live(&["b", "> "], (1, 2))).unwrap();
    assert_eq!(terminal.shown(), ["said", "b", ">"]);
}

#[test]
fn a_live_area_higher_than_the_terminal_keeps_its_lowest_rows() {
    let (terminal, mut screen) = start(20, 4);
    screen.print(Line::plain("said"));
    let rows = ["1", "2", "3", "4", "5", "> x"];
    for _ in 0..3 {
        screen.draw(live(&rows, (5, 3))).unwrap();
    }
    assert_eq!(terminal.shown(), ["said", "4", "5", "> x"]);
    assert_eq!(terminal.cursor(), (3, 3));
}

#[test]
fn rows_that_are_the_same_are_not_written_again() {
    let (terminal, mut screen) = start(20, 8);
    screen
        .draw(live(&["unchanged", "tick 1", "> x"], (2, 3)))
        .unwrap();
    terminal.take_bytes();
    screen
        .draw(live(&["unchanged", "tick 2", "> x"], (2, 3)))
        .unwrap();
    let bytes = terminal.take_bytes();
    assert!(bytes.contains("tick 2"), "{bytes:?}");
    assert!(!bytes.contains("unchanged"), "{bytes:?}");
    assert!(!bytes.contains("\u{1b}[2J"), "{bytes:?}");
    screen
        .draw(live(&["unchanged", "tick 2", "> x"], (2, 3)))
        .unwrap();
    assert_eq!(terminal.take_bytes(), "");
}

#[test]
fn everything_is_shown_at_once() {
    let (terminal, mut screen) = start(20, 8);
    screen.print(Line::plain("said"));
    screen.draw(live(&["> x"], (0, 3))).unwrap();
    let bytes = terminal.take_bytes();
    assert!(bytes.starts_with("\u{1b}[?2026h"), "{bytes:?}");
    assert!(bytes.ends_with("\u{1b}[?2026l"), "{bytes:?}");
}

#[test]
fn a_row_that_the_narrower_terminal_breaks_is_found_again() {
    let (terminal, mut screen) = start(20, 8);
    screen.print(Line::plain("said"));
    screen
        .draw(live(&["0123456789abcdef", "> x"], (1, 3)))
        .unwrap();
    // What a terminal does that reflows: the row of 16 columns takes two rows of ten.
    let reflowed = Terminal::new(10, 8);
    let mut writer = reflowed.clone();
    writer
        .write_all(b"said\r\n0123456789\r\nabcdef\r\n> x")
        .unwrap();
    screen.out = writer;
    screen.resize(Size {
        columns: 10,
        rows: 8,
    });
    screen.draw(live(&["012345678", "> x"], (1, 3))).unwrap();
    assert_eq!(reflowed.shown(), ["said", "012345678", "> x"]);
    assert_eq!(reflowed.cursor(), (2, 3));
    drop(terminal);
}

#[test]
fn wide_characters_keep_their_places() {
    let (terminal, mut screen) = start(12, 6);
    screen.print(Line::plain("漢字かな漢字かな"));
    screen.draw(live(&["> 漢字x"], (0, 6))).unwrap();
    assert_eq!(terminal.shown(), ["漢字かな漢字", "かな", "> 漢字x"]);
    assert_eq!(terminal.cursor(), (2, 6));
}

#[test]
fn leaving_removes_the_live_area_and_takes_back_every_mode() {
    let (terminal, mut screen) = start(20, 8);
    screen.enter().unwrap();
    screen.print(Line::plain("said"));
    screen.draw(live(&["busy", "> x"], (1, 3))).unwrap();
    assert!(terminal.0.lock().unwrap().0.screen().bracketed_paste());
    drop(screen);
    assert_eq!(terminal.shown(), ["said"]);
    assert_eq!(terminal.cursor(), (1, 0));
    let bytes = terminal.take_bytes();
    let guard = terminal.0.lock().unwrap();
    assert!(!guard.0.screen().bracketed_paste());
    assert!(!guard.0.screen().hide_cursor());
    assert!(!guard.0.screen().alternate_screen());
    for mode in ["\u{1b}[?2026l", "\u{1b}[<1u"] {
        assert!(bytes.contains(mode), "{bytes:?}");
    }
}

#[test]
fn the_restoring_bytes_take_back_every_mode() {
    let mut terminal = Terminal::new(20, 4);
    terminal.write_all(ENTER.as_bytes()).unwrap();
    terminal.write_all(BEGIN.as_bytes()).unwrap();
    terminal.write_all(restoring_bytes().as_bytes()).unwrap();
    let guard = terminal.0.lock().unwrap();
    assert!(!guard.0.screen().bracketed_paste());
    assert!(!guard.0.screen().hide_cursor());
}
