//! Markdown that arrives in pieces. What is complete is given out once, to be printed for good; the
//! rest can be looked at as it would be now. Code is given out line by line, lists item by item, so
//! the rest stays short.

mod render;
mod table;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use crate::style::{Line, Style};

pub(crate) use render::render;

const CODE: Style = Style::PLAIN.color(crate::style::Color::Cyan);
const FAINT: Style = Style::PLAIN.dim();

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Text of one speaker, as it arrives.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// What arrived and was not given out.
    rest: String,
    fence: Option<Fence>,
    /// Whether something was given out, from which the next block is to stand apart.
    needs_gap: bool,
}

/// A block of code that is open.
#[derive(Debug)]
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
}

impl Stream {
    pub(crate) fn push(&mut self, text: &str) {
        self.rest.push_str(text);
    }

    /// Whether nothing is left to be given out.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.trim().is_empty() && self.fence.is_none()
    }

    /// Takes what is complete.
    pub(crate) fn take_complete(&mut self, columns: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        loop {
            let has_more = match self.fence.take() {
                Some(fence) => self.take_code(fence, &mut lines),
                None => self.take_prose(columns, &mut lines),
            };
            if !has_more {
                return lines;
            }
        }
    }

    /// Takes everything: no more will arrive.
    pub(crate) fn finish(&mut self, columns: usize) -> Vec<Line> {
        let mut lines = self.take_complete(columns);
        lines.extend(self.tail(columns));
        if self.fence.is_some() {
            lines.push(Line::new("```", FAINT));
        }
        *self = Self::default();
        lines
    }

    /// What is not complete, as it would be now.
    pub(crate) fn tail(&self, columns: usize) -> Vec<Line> {
        if self.fence.is_some() {
            return Line::lines(&self.rest, CODE);
        }
        let mut lines = render(&self.rest, columns);
        if self.needs_gap && !lines.is_empty() {
            lines.insert(0, Line::default());
        }
        lines
    }

    /// Takes whole lines of code up to the end of the block, and says whether it has ended.
    fn take_code(&mut self, fence: Fence, lines: &mut Vec<Line>) -> bool {
        let all = std::mem::take(&mut self.rest);
        let mut rest = all.as_str();
        let mut has_ended = false;
        while let Some((line, after)) = rest.split_once('\n') {
            rest = after;
            if fence.is_ended_by(line) {
                lines.push(Line::new("```", FAINT));
                has_ended = true;
                break;
            }
            lines.push(Line::new(fence.without_indent(line), CODE));
        }
        rest.clone_into(&mut self.rest);
        if has_ended {
            self.needs_gap = true;
        } else {
            self.fence = Some(fence);
        }
        has_ended
    }

    /// Takes all blocks but the last, which may go on. Says whether a block of code has begun.
    fn take_prose(&mut self, columns: usize, lines: &mut Vec<Line>) -> bool {
        let Some(last) = last_block(&self.rest) else {
            return false;
        };
        if last.start > 0
            && let Some((complete, rest)) = self.rest.split_at_checked(last.start)
        {
            let rendered = render(complete, columns);
            if self.needs_gap && !rendered.is_empty() {
                lines.push(Line::default());
            }
            self.needs_gap |= !rendered.is_empty();
            lines.extend(rendered);
            if last.is_item {
                self.needs_gap = false;
            }
            self.rest = rest.to_owned();
        }
        if !last.is_fence {
            return false;
        }
        let Some((opening, code)) = self.rest.split_once('\n') else {
            return false;
        };
        let Some((fence, language)) = Fence::opened_by(opening) else {
            return false;
        };
        if self.needs_gap {
            lines.push(Line::default());
        }
        lines.push(Line::new(&format!("```{language}"), FAINT));
        self.rest = code.to_owned();
        self.fence = Some(fence);
        true
    }
}

impl Fence {
    /// The fence that a line opens, and the language that it names.
    fn opened_by(line: &str) -> Option<(Self, &str)> {
        let trimmed = line.trim_start();
        let mark = trimmed.chars().next()?;
        let language = trimmed.trim_start_matches(mark);
        let length = trimmed.len() - language.len();
        let indent = line.len() - trimmed.len();
        let is_fence = matches!(mark, '`' | '~') && length >= 3;
        let fence = Self {
            mark,
            length,
            indent,
        };
        is_fence.then(|| (fence, language.trim()))
    }

    fn is_ended_by(&self, line: &str) -> bool {
        let trimmed = line.trim_start_matches(' ');
        let after = trimmed.trim_start_matches(self.mark);
        line.len() - trimmed.len() <= 3
            && trimmed.len() - after.len() >= self.length
            && after.trim().is_empty()
    }

    /// A fence that is indented has indented code.
    fn without_indent<'a>(&self, line: &'a str) -> &'a str {
        let spaces = line.len() - line.trim_start_matches(' ').len();
        line.get(spaces.min(self.indent)..).unwrap_or(line)
    }
}

/// The block at the end of a text, which may go on.
#[derive(Default)]
struct LastBlock {
    start: usize,
    is_fence: bool,
    /// It is an item, and there are others before it.
    is_item: bool,
    /// An empty line ends it.
    ends_at_gap: bool,
}

/// The block that may go on, of those that begin in whole lines: what half a line will be is not
/// known, and a digit alone can become an item.
fn last_block(text: &str) -> Option<LastBlock> {
    let (whole, _) = text.split_at_checked(text.rfind('\n')? + 1)?;
    let mut last = LastBlock::default();
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(whole, options()).into_offset_iter() {
        let start = range.start;
        match event {
            Event::Start(Tag::Item) if depth == 1 => {
                last.is_item = start > last.start;
                last.start = start;
                depth += 1;
            }
            Event::Start(tag) => {
                if depth == 0 {
                    last = LastBlock::of(&tag, start);
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => {
                last = LastBlock {
                    start,
                    ..LastBlock::default()
                }
            }
            _ => {}
        }
    }
    if last.ends_at_gap && whole.lines().next_back().is_some_and(is_blank) {
        last.start = whole.len();
    }
    Some(last)
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

impl LastBlock {
    fn of(tag: &Tag<'_>, start: usize) -> Self {
        Self {
            start,
            is_fence: matches!(tag, Tag::CodeBlock(CodeBlockKind::Fenced(_))),
            is_item: false,
            ends_at_gap: matches!(
                tag,
                Tag::Paragraph | Tag::Heading { .. } | Tag::Table(_) | Tag::BlockQuote(_)
            ),
        }
    }
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
