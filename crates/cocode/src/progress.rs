//! Shows how far a call is: a bar at a terminal, lines in verbose logs, else nothing.

use std::sync::Arc;

use cocode_client::{OnProgress, Progress};

use crate::printer::Printer;
use crate::text::plain;

/// Cells of the bar.
const CELLS: usize = 24;

/// What a call reports to, if anybody wants to see it.
pub(crate) fn reporter(printer: &Arc<Printer>) -> Option<OnProgress> {
    let printer = Arc::clone(printer);
    if printer.shows_bar() {
        return Some(Arc::new(move |progress: &Progress| {
            printer.bar(&render(progress));
        }));
    }
    if printer.verbose() {
        return Some(Arc::new(move |progress: &Progress| {
            printer.err_line(&format!("progress: {}", counts(progress)));
        }));
    }
    None
}

fn render(progress: &Progress) -> String {
    match share(progress) {
        Some(share) => {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "a share between 0 and 1 of a small number"
            )]
            let full = (share * CELLS as f64).round() as usize;
            let (full, empty) = ("#".repeat(full), "-".repeat(CELLS.saturating_sub(full)));
            format!("[{full}{empty}] {}", counts(progress))
        }
        None => counts(progress),
    }
}

fn counts(progress: &Progress) -> String {
    let Progress {
        progress: done,
        total,
        message,
    } = progress;
    let mut text = match total {
        Some(total) => format!("{done}/{total}"),
        None => format!("{done}"),
    };
    if let Some(message) = message {
        text.push(' ');
        text.push_str(&plain(message));
    }
    text
}

/// Between 0 and 1, where there is a total worth the name.
fn share(progress: &Progress) -> Option<f64> {
    let total = progress.total.filter(|total| *total > 0.0)?;
    let share = progress.progress / total;
    share.is_finite().then(|| share.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use cocode_client::Progress;

    use super::render;

    #[track_caller]
    fn check(progress: f64, total: Option<f64>, message: Option<&str>, expected: &str) {
        let message = message.map(str::to_owned);
        let progress = Progress {
            progress,
            total,
            message,
        };
        assert_eq!(render(&progress), expected);
    }

    #[test]
    fn bars_need_a_total() {
        check(
            3.0,
            Some(12.0),
            Some("x\u{1b}y"),
            "[######------------------] 3/12 x\u{fffd}y",
        );
        check(20.0, Some(10.0), None, "[########################] 20/10");
        check(0.5, Some(1.0), None, "[############------------] 0.5/1");
        check(7.0, None, Some("working"), "7 working");
        check(7.0, Some(0.0), None, "7/0");
    }
}
