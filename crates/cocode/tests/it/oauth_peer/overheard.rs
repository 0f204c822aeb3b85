//! Everything that a program could write down: logs of all levels and all libraries, panics, and
//! what a test says for it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io;
use std::sync::{Mutex, PoisonError};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// How much of the end of a secret is already too much.
const TELLING: usize = 16;

static HEARD: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Ear;

impl io::Write for Ear {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
        heard.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl log::Log for Ear {
    fn enabled(&self, _metadata: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        note(record);
        note(record.args());
    }

    fn flush(&self) {}
}

/// Begins to listen, in the whole process.
pub(super) fn listen() {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_span_events(FmtSpan::FULL)
        .with_ansi(false)
        .with_writer(|| Ear)
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    log::set_logger(&Ear).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        note(info);
        note(&info.to_string());
        usual(info);
    }));
}

/// Writes down what a program may write, in every way that it could.
pub(super) fn note(value: &dyn Debug) {
    use io::Write as _;
    writeln!(Ear, "{value:?}\n{value:#?}").unwrap();
}

pub(super) fn heard() -> String {
    let heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&heard).into_owned()
}

/// The secrets of which a text tells too much.
pub(super) fn told<'a>(text: &str, secrets: &'a BTreeSet<String>) -> Vec<&'a str> {
    let is_told = |secret: &&String| {
        let end = secret.len() - TELLING.min(secret.len());
        text.contains(secret.get(end..).unwrap_or(secret))
    };
    secrets.iter().filter(is_told).map(String::as_str).collect()
}
