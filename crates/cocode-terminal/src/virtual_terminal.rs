//! A terminal for tests that understands what is written to it.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// A terminal that is fed with what is written.
#[derive(Clone)]
pub(crate) struct Terminal(pub(crate) Arc<Mutex<(vt100::Parser, Vec<u8>)>>);

impl Terminal {
    pub(crate) fn new(columns: u16, rows: u16) -> Self {
        let parser =
            vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 1000);
        Self(Arc::new(Mutex::new((parser, Vec::new()))))
    }

    pub(crate) fn shown(&self) -> Vec<String> {
        let terminal = self.0.lock().unwrap();
        let (_, columns) = terminal.0.screen().size();
        let mut rows: Vec<String> = terminal
            .0
            .screen()
            .rows(0, columns.get())
            .map(|row| row.trim_end().to_owned())
            .collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    pub(crate) fn scrolled_back(&self, by: usize) -> Vec<String> {
        self.0.lock().unwrap().0.screen_mut().set_scrollback(by);
        let shown = self.shown();
        self.0.lock().unwrap().0.screen_mut().set_scrollback(0);
        shown
    }

    pub(crate) fn cursor(&self) -> (u16, u16) {
        self.0.lock().unwrap().0.screen().cursor_position()
    }

    pub(crate) fn take_bytes(&self) -> String {
        let bytes = std::mem::take(&mut self.0.lock().unwrap().1);
        String::from_utf8(bytes).unwrap()
    }
}

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut terminal = self.0.lock().unwrap();
        terminal.0.process(bytes);
        terminal.1.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
