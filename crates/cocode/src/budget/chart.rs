//! A budget for people: a table with bars of plain characters, and what follows from it.

use std::time::SystemTime;

use super::advice::suggestions;
use super::report::saved_percent;
use super::weighed::{Counting, Weighed, WeighedServer};
use crate::printer::{Paint, Style};
use crate::text::{age, cut, plain, wrap};
use crate::toolbox::callable;

/// The longest bar.
const MAX_BAR: usize = 40;
/// Shorter bars say nothing.
const MIN_BAR: usize = 5;
/// How wide the first column may be.
const MAX_NAME: usize = 40;
/// How wide it is at least, however narrow the terminal.
const MIN_NAME: usize = 12;
/// How many tools are named that nobody used.
const MAX_NAMED: usize = 8;
/// How wide text is where there is no terminal.
const WIDTH: usize = 100;

/// A line of the table.
struct Line {
    name: String,
    tools: String,
    tokens: u64,
    calls: String,
    is_total: bool,
}

pub(super) fn text(weighed: &Weighed, with_tools: bool, width: usize, paint: Paint) -> String {
    let width = if width > 10_000 { WIDTH } else { width };
    let mut text = table(weighed, with_tools, width, paint);
    text.push('\n');
    let now = SystemTime::now();
    for (title, words) in facts(weighed, now) {
        push(&mut text, title, &words, width, paint);
    }
    for words in suggestions(weighed, now) {
        push(&mut text, "suggestion", &words, width, paint);
    }
    text
}

/// A title, and words that are wrapped beside it.
fn push(text: &mut String, title: &str, words: &str, width: usize, paint: Paint) {
    const COLUMN: usize = 12;
    for (number, line) in wrap(words, width.saturating_sub(COLUMN)).iter().enumerate() {
        let title = if number == 0 { title } else { "" };
        let padding = " ".repeat(COLUMN.saturating_sub(title.len()));
        text.push_str(&paint.paint(Style::Dim, title));
        text.push_str(&padding);
        text.push_str(line);
        text.push('\n');
    }
}

fn table(weighed: &Weighed, with_tools: bool, width: usize, paint: Paint) -> String {
    let lines = lines(weighed, with_tools);
    let percent = |tokens| share(weighed.percent(tokens));
    let has_calls = weighed.counting == Counting::Known;
    let column = |head: &str, cell: &dyn Fn(&Line) -> usize| {
        let cells = lines.iter().map(cell).max().unwrap_or_default();
        cells.max(head.len())
    };
    let tools = column("TOOLS", &|line| line.tools.len());
    let tokens = column("TOKENS", &|line| grouped(line.tokens).len());
    let window = column("WINDOW", &|line| percent(line.tokens).len());
    let calls = column("CALLS", &|line| line.calls.len());
    let calls = if has_calls { calls + 2 } else { 0 };
    let numbers = tools + tokens + window + calls + 6;
    let widest = column("SERVER", &|line| line.name.chars().count());
    // What is left of long names says enough, and without bars there is no chart.
    let room = width.saturating_sub(numbers + 2 + 2 * MIN_BAR);
    let name = widest.min(MAX_NAME).min(room).max(MIN_NAME);
    let bar = width.saturating_sub(name + numbers + 2).min(MAX_BAR);
    let most = lines.iter().filter(|line| !line.is_total);
    let most = most.map(|line| line.tokens).max().unwrap_or_default();
    let row = |cells: [&str; 5], filled: usize| {
        let [first, two, three, four, five] = cells;
        let first = cut(first, name);
        let padding = " ".repeat(name.saturating_sub(first.chars().count()));
        let mut line =
            format!("{first}{padding}  {two:>tools$}  {three:>tokens$}  {four:>window$}");
        if has_calls {
            let padding = " ".repeat(calls.saturating_sub(five.len()));
            line.extend([padding.as_str(), five]);
        }
        if bar >= MIN_BAR {
            line.push_str("  ");
            line.push_str(&"#".repeat(filled));
        }
        line.trim_end().to_owned()
    };
    let head = row(["SERVER", "TOOLS", "TOKENS", "WINDOW", "CALLS"], 0);
    let mut text = format!("{}\n", paint.paint(Style::Dim, &head));
    for line in &lines {
        let filled = if line.is_total {
            0
        } else {
            length(line.tokens, most, bar)
        };
        let (count, part) = (grouped(line.tokens), percent(line.tokens));
        let cells = [line.name.as_str(), &line.tools, &count, &part, &line.calls];
        text.push_str(&row(cells, filled));
        text.push('\n');
    }
    text
}

fn lines(weighed: &Weighed, with_tools: bool) -> Vec<Line> {
    let mut lines = Vec::new();
    for server in &weighed.servers {
        let always = if server.always_load { " (always)" } else { "" };
        lines.push(Line {
            name: format!("{}{always}", plain(&server.name)),
            tools: server.tools.len().to_string(),
            tokens: server.cost.tokens,
            calls: grouped(server.calls()),
            is_total: false,
        });
        let tools = server.tools.iter().filter(|_| with_tools);
        lines.extend(tools.map(|tool| Line {
            name: format!("  {}", plain(&tool.name)),
            tools: String::new(),
            tokens: tool.cost.tokens,
            calls: grouped(tool.calls()),
            is_total: false,
        }));
    }
    let n_tools: usize = weighed
        .servers
        .iter()
        .map(|server| server.tools.len())
        .sum();
    lines.push(Line {
        name: "total".to_owned(),
        tools: n_tools.to_string(),
        tokens: weighed.shown().tokens,
        calls: grouped(weighed.servers.iter().map(WeighedServer::calls).sum()),
        is_total: true,
    });
    lines
}

/// What is to be known beside the table.
fn facts(weighed: &Weighed, now: SystemTime) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if weighed.is_selection() {
        let all = weighed.all.tokens;
        facts.push((
            "all servers",
            format!(
                "{} tokens, {:.1}% of the window, in {} tools of {} servers",
                grouped(all),
                weighed.percent(all),
                weighed.n_tools,
                weighed.n_servers
            ),
        ));
    }
    let (window, from) = (grouped(weighed.window), &weighed.window_from);
    let estimate = "token counts are estimates";
    facts.push(("window", format!("{window} tokens ({from}); {estimate}")));
    facts.push(("search", weighed.decision.to_string()));
    let (with, all) = (
        grouped(weighed.with_search.tokens),
        grouped(weighed.all.tokens),
    );
    let saved = grouped(u64::try_from(weighed.saved().unsigned_abs()).unwrap_or(u64::MAX));
    let percent = saved_percent(weighed).abs();
    facts.push((
        "saving",
        if weighed.saved() >= 0 {
            format!(
                "with search {with} tokens instead of {all}: {saved} ({percent:.1}%) saved until \
                 tools are found"
            )
        } else {
            format!("none: with search it would be {with} tokens instead of {all}")
        },
    ));
    facts.extend(use_of(weighed, now));
    facts
}

fn use_of(weighed: &Weighed, now: SystemTime) -> Vec<(&'static str, String)> {
    let counted = match weighed.counting {
        Counting::Known => weighed.counted_for(now).map(age).unwrap_or_default(),
        Counting::NothingYet => {
            let words = "no call was counted yet, so nothing is known of what is used";
            return vec![("use", words.to_owned())];
        }
        Counting::SwitchedOff => {
            let words = "calls are not counted: `record_usage = false` in [retention]";
            return vec![("use", words.to_owned())];
        }
        Counting::Nowhere => return Vec::new(),
    };
    let mut never: Vec<_> = weighed.never_used().collect();
    never.sort_by_key(|(_, tool)| std::cmp::Reverse(tool.cost.tokens));
    let n_tools: usize = weighed
        .servers
        .iter()
        .map(|server| server.tools.len())
        .sum();
    let mut words = format!(
        "calls are counted for {counted}: {} of {n_tools} tools were never called",
        never.len()
    );
    let named = never.iter().take(MAX_NAMED);
    let named: Vec<String> = named
        .map(|(server, tool)| plain(&callable(&server.name, &tool.name)))
        .collect();
    if !named.is_empty() {
        let more = match never.len() - named.len() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        words = format!("{words} ({}{more})", named.join(", "));
    }
    let mut facts = vec![("use", words)];
    let unused = weighed.servers.iter();
    let unused = unused.filter(|server| !server.tools.is_empty() && server.calls() == 0);
    let unused: Vec<String> = unused.map(|server| plain(&server.name)).collect();
    if !unused.is_empty() {
        facts.push((
            "unused",
            format!("nothing was called of {}", unused.join(", ")),
        ));
    }
    facts
}

/// How long a bar is: what is there is seen.
fn length(tokens: u64, most: u64, longest: usize) -> usize {
    if tokens == 0 || most == 0 {
        return 0;
    }
    let longest = u128::try_from(longest).unwrap_or_default();
    let length = (u128::from(tokens) * longest).div_ceil(u128::from(most));
    usize::try_from(length).unwrap_or_default()
}

/// `12.3%`: what is there is never nothing.
fn share(percent: f64) -> String {
    if percent > 0.0 && percent < 0.05 {
        "<0.1%".to_owned()
    } else {
        format!("{percent:.1}%")
    }
}

/// `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
#[path = "chart_tests.rs"]
mod tests;
