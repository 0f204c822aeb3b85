//! Styled text: pieces that are harmless by construction, lines of them, and their bytes.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::text::{harmless, width};

/// The sixteen colors are those of the person's terminal: what suits its background is up to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "colors explain themselves")]
pub enum Color {
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
    Gray,
}

/// What the terminal can show, and what the person wants to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// Colors, and the rest.
    #[default]
    Color,
    /// Bold, dim, underlined and so on, but no colors (`NO_COLOR`).
    Mono,
    /// Text and nothing else.
    Plain,
}

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "these are independent attributes of a terminal's cell"
)]
pub struct Style {
    color: Option<Color>,
    bold: bool,
    dim: bool,
    italic: bool,
    underlined: bool,
    reversed: bool,
    struck: bool,
}

/// A piece of text of one style. It holds no line end and nothing that a terminal would obey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    text: String,
    style: Style,
}

/// A line of styled text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    spans: Vec<Span>,
}

impl Style {
    /// As the terminal shows text by itself.
    pub const PLAIN: Self = Self {
        color: None,
        bold: false,
        dim: false,
        italic: false,
        underlined: false,
        reversed: false,
        struck: false,
    };

    /// In a color.
    #[must_use]
    pub const fn color(mut self, color: Color) -> Self {
        self.color = Some(color);
        self
    }

    /// Bold.
    #[must_use]
    pub const fn bold(mut self) -> Self {
        self.bold = true;
        self
    }

    /// Less visible.
    #[must_use]
    pub const fn dim(mut self) -> Self {
        self.dim = true;
        self
    }

    /// Italic.
    #[must_use]
    pub const fn italic(mut self) -> Self {
        self.italic = true;
        self
    }

    /// Underlined.
    #[must_use]
    pub const fn underlined(mut self) -> Self {
        self.underlined = true;
        self
    }

    /// With foreground and background exchanged.
    #[must_use]
    pub const fn reversed(mut self) -> Self {
        self.reversed = true;
        self
    }

    /// Struck through.
    #[must_use]
    pub const fn struck(mut self) -> Self {
        self.struck = true;
        self
    }

    /// The parameters of the sequence that sets it, none if there is nothing to set.
    fn codes(self, palette: Palette) -> Vec<u8> {
        if palette == Palette::Plain {
            return Vec::new();
        }
        let flags = [
            (self.bold, 1),
            (self.dim, 2),
            (self.italic, 3),
            (self.underlined, 4),
            (self.reversed, 7),
            (self.struck, 9),
        ];
        let mut codes: Vec<u8> = flags
            .into_iter()
            .filter_map(|(is_set, code)| is_set.then_some(code))
            .collect();
        if palette == Palette::Color {
            codes.extend(self.color.map(|color| match color {
                Color::Red => 31,
                Color::Green => 32,
                Color::Yellow => 33,
                Color::Blue => 34,
                Color::Magenta => 35,
                Color::Cyan => 36,
                Color::Gray => 90,
            }));
        }
        codes
    }
}

impl Span {
    /// A piece of one line: line ends become spaces.
    pub fn new(text: &str, style: Style) -> Self {
        let text = match harmless(text) {
            Cow::Borrowed(text) if !text.contains('\n') => text.to_owned(),
            text => text.replace('\n', " "),
        };
        Self { text, style }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The style.
    pub fn style(&self) -> Style {
        self.style
    }
}

impl Line {
    /// A line of one piece.
    pub fn new(text: &str, style: Style) -> Self {
        Self::default().with(text, style)
    }

    /// A line as the terminal shows text by itself.
    pub fn plain(text: &str) -> Self {
        Self::new(text, Style::PLAIN)
    }

    /// One line for each of the text.
    pub fn lines(text: &str, style: Style) -> Vec<Self> {
        let harmless = harmless(text);
        harmless
            .lines()
            .map(|line| Self::new(line, style))
            .collect()
    }

    /// With another piece at its end.
    #[must_use]
    pub fn with(mut self, text: &str, style: Style) -> Self {
        self.push(Span::new(text, style));
        self
    }

    /// Adds a piece at the end.
    pub fn push(&mut self, span: Span) {
        if span.text.is_empty() {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.style == span.style => last.text.push_str(&span.text),
            _ => self.spans.push(span),
        }
    }

    /// Adds all pieces of another line at the end.
    pub fn append(&mut self, other: Self) {
        for span in other.spans {
            self.push(span);
        }
    }

    /// The pieces.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The text without its styles.
    pub fn text(&self) -> String {
        self.spans.iter().map(Span::text).collect()
    }

    /// How many columns it takes.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| width(&span.text)).sum()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The bytes that show it. The style of the terminal is plain before and after.
    pub(crate) fn write(&self, out: &mut String, palette: Palette) {
        for Span { text, style } in &self.spans {
            let codes = style.codes(palette);
            if codes.is_empty() {
                out.push_str(text);
                continue;
            }
            out.push_str("\u{1b}[");
            for (place, code) in codes.iter().enumerate() {
                let separator = if place == 0 { "" } else { ";" };
                // Writing to a string does not fail.
                let _infallible = write!(out, "{separator}{code}");
            }
            out.push('m');
            out.push_str(text);
            out.push_str("\u{1b}[0m");
        }
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self::plain(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(line: &Line, palette: Palette) -> String {
        let mut out = String::new();
        line.write(&mut out, palette);
        out
    }

    #[test]
    fn styles_are_written_as_far_as_the_palette_goes() {
        let red = Style::PLAIN.bold().color(Color::Red);
        let line = Line::plain("a").with("b", red).with("c", Style::PLAIN);
        assert_eq!(bytes(&line, Palette::Color), "a\u{1b}[1;31mb\u{1b}[0mc");
        assert_eq!(bytes(&line, Palette::Mono), "a\u{1b}[1mb\u{1b}[0mc");
        assert_eq!(bytes(&line, Palette::Plain), "abc");
    }

    #[test]
    fn no_sequence_of_others_gets_into_a_line() {
        let line = Line::plain("a\u{1b}]52;c;Zm9v\u{7}b\u{1b}cd\n\u{9b}2Je");
        assert_eq!(bytes(&line, Palette::Color), "ab␛cd <9B>2Je");
    }

    #[test]
    fn pieces_of_one_style_are_one_piece() {
        let line = Line::plain("a")
            .with("b", Style::PLAIN)
            .with("", Style::PLAIN.bold());
        assert_eq!(line.spans().len(), 1);
        assert_eq!((line.text().as_str(), line.width()), ("ab", 2));
    }
}
