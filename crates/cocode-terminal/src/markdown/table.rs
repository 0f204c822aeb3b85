//! Tables: in columns where they fit, else one line for each cell.

use super::FAINT;
use crate::style::{Line, Style};
use crate::wrap::wrap_words;

const BETWEEN: &str = "  ";

/// The cells, by rows; the first row is the head.
#[derive(Default)]
pub(super) struct Table {
    rows: Vec<Vec<Line>>,
}

impl Table {
    pub(super) fn start_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn add_cell(&mut self, cell: Line) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    pub(super) fn lines(self, columns: usize) -> Vec<Line> {
        let n_columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let widths: Vec<usize> = (0..n_columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(Line::width).max().unwrap_or_default()
            })
            .collect();
        let between = BETWEEN.len() * n_columns.saturating_sub(1);
        if widths.iter().sum::<usize>() + between <= columns {
            self.in_columns(&widths)
        } else {
            self.one_below_the_other(columns)
        }
    }

    fn in_columns(self, widths: &[usize]) -> Vec<Line> {
        let mut lines = Vec::new();
        for (place, row) in self.rows.into_iter().enumerate() {
            let mut line = Line::default();
            let last = row.len().saturating_sub(1);
            for (column, (cell, width)) in row.into_iter().zip(widths).enumerate() {
                let padding = width.saturating_sub(cell.width());
                line.append(if place == 0 { emphasized(&cell) } else { cell });
                if column < last {
                    line.append(Line::plain(&format!("{}{BETWEEN}", " ".repeat(padding))));
                }
            }
            lines.push(line);
            if place == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::new(&rule.join(BETWEEN), FAINT));
            }
        }
        lines
    }

    fn one_below_the_other(self, columns: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut rows = self.rows.into_iter();
        let head = rows.next().unwrap_or_default();
        for (place, row) in rows.enumerate() {
            if place > 0 {
                lines.push(Line::default());
            }
            for (column, cell) in row.into_iter().enumerate() {
                let mut line = head.get(column).map(emphasized).unwrap_or_default();
                line.append(Line::plain(": "));
                line.append(cell);
                lines.extend(wrap_words(&line, columns, &Line::plain("  ")));
            }
        }
        lines
    }
}

fn emphasized(cell: &Line) -> Line {
    Line::new(&cell.text(), Style::PLAIN.bold())
}
