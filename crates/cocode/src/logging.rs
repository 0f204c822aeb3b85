//! Where logs go and how many there are: nothing but errors unless asked, stderr unless told
//! otherwise. stdout belongs to results.

mod one_line;

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::{Arc, Mutex};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::Layer;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::one_line::OneLine;
use crate::args::OutputArgs;
use crate::environment::Environment;
use crate::error::{CliError, Code};
use crate::printer::{ErrWriter, Printer};

/// A log that is kept within bounds is begun anew when it is as large as this. The one before is
/// kept.
const MAX_LOG_BYTES: u64 = 4 * 1024 * 1024;

/// How large a log file may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// As it comes: somebody wants all of it.
    Free,
    /// Nobody looks after it.
    Bounded,
}

/// Begins to log.
pub(crate) fn start(
    args: &OutputArgs,
    growth: Growth,
    environment: &Environment,
    printer: &Arc<Printer>,
) -> Result<(), CliError> {
    let filter = filter(args, environment.log_filter.as_deref())?;
    let registry = tracing_subscriber::registry().with(filter);
    let started = if let Some(path) = &args.log_file {
        let most = match growth {
            Growth::Free => u64::MAX,
            Growth::Bounded => MAX_LOG_BYTES,
        };
        let file = LogFile::open(path.clone(), most);
        let file = file.map_err(|error| CliError::file("write the log file", path, &error))?;
        let file = OneLine {
            inner: file,
            has_colours: false,
        };
        let layer = Layer::new().with_ansi(false).with_writer(Mutex::new(file));
        registry.with(layer).try_init()
    } else {
        let printer = Arc::clone(printer);
        let has_colours = printer.error_paint().on;
        let layer = Layer::new()
            .with_ansi(has_colours)
            .without_time()
            .with_writer(move || OneLine {
                inner: ErrWriter(Arc::clone(&printer)),
                has_colours,
            });
        registry.with(layer).try_init()
    };
    started
        .map_err(|error| CliError::new(Code::SetupFailed, "cannot start logging").because(&error))
}

/// Opens a log to add to it. Only its owner may read it.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.append(true).create(true).mode(0o600).open(path)
}

/// A file that lines are added to. When it is too large, it is put aside for another.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    file: File,
    size: u64,
    most: u64,
}

impl LogFile {
    fn open(path: PathBuf, most: u64) -> io::Result<Self> {
        let file = open(&path)?;
        let size = file.metadata()?.len();
        Ok(Self {
            path,
            file,
            size,
            most,
        })
    }

    /// Begins anew, with the file before beside it.
    fn turn(&mut self) -> io::Result<()> {
        let mut before = self.path.clone().into_os_string();
        before.push(".1");
        match std::fs::rename(&self.path, before) {
            // Somebody has put it away.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        *self = Self::open(self.path.clone(), self.most)?;
        Ok(())
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.size >= self.most {
            self.turn()?;
        }
        let written = self.file.write(line)?;
        self.size += u64::try_from(written).unwrap_or(u64::MAX);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn filter(args: &OutputArgs, wanted: Option<&str>) -> Result<Targets, CliError> {
    if let Some(wanted) = wanted {
        let bad = |error| {
            let message = format!("the variable COCODE_LOG holds no log filter: `{wanted}`");
            CliError::new(Code::InvalidUsage, message)
                .because(&error)
                .hint("write it as `debug` or `cocode_wire=trace,info`")
        };
        return Targets::from_str(wanted).map_err(bad);
    }
    let level = match (args.verbose, &args.log_file) {
        (0, None) => LevelFilter::ERROR,
        (1, None) => LevelFilter::INFO,
        (0..=2, _) => LevelFilter::DEBUG,
        (3.., _) => LevelFilter::TRACE,
    };
    // Libraries below us are chatty; they are heard only by name, through COCODE_LOG.
    let targets = Targets::new().with_default(level.min(LevelFilter::WARN));
    Ok(targets.with_target("cocode", level))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::PathBuf;

    use tracing_subscriber::filter::LevelFilter;

    use super::{LogFile, filter};
    use crate::args::OutputArgs;

    #[test]
    fn verbosity_chooses_the_level() {
        for (verbose, log_file, expected) in [
            (0, false, LevelFilter::ERROR),
            (1, false, LevelFilter::INFO),
            (2, false, LevelFilter::DEBUG),
            (3, false, LevelFilter::TRACE),
            (0, true, LevelFilter::DEBUG),
            (4, true, LevelFilter::TRACE),
        ] {
            let args = OutputArgs {
                verbose,
                log_file: log_file.then(|| PathBuf::from("log")),
                ..OutputArgs::default()
            };
            let targets = filter(&args, None).unwrap();
            let level = targets.iter().map(|(_, level)| level).max();
            assert_eq!(level, Some(expected), "{verbose} {log_file}");
            let most = expected.into_level().unwrap();
            for ours in ["cocode", "cocode_access::audit::log", "cocode_wire"] {
                assert!(targets.would_enable(ours, &most), "{ours}");
            }
            assert!(!targets.would_enable("hyper", &tracing::Level::INFO));
        }
    }

    #[test]
    fn a_bounded_log_is_begun_anew_and_the_one_before_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        std::fs::write(&path, "from before\n").unwrap();
        let mut log = LogFile::open(path.clone(), 16).unwrap();
        for line in ["one\n", "two\n", "three\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        let before = directory.path().join("log.1");
        assert_eq!(
            std::fs::read_to_string(&before).unwrap(),
            "from before\none\n"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\nthree\n");
        for _ in 0..8 {
            log.write_all(b"more\n").unwrap();
        }
        let sizes = [path, before].map(|path| std::fs::metadata(path).unwrap().len());
        assert!(sizes.iter().all(|size| *size < 32), "{sizes:?}");
    }

    #[test]
    fn the_variable_wins_and_must_be_a_filter() {
        let args = OutputArgs::default();
        let targets = filter(&args, Some("cocode_wire=trace")).unwrap();
        assert!(targets.would_enable("cocode_wire", &tracing::Level::TRACE));
        let error = filter(&args, Some("a=b=c")).unwrap_err();
        assert_eq!(error.code, "invalid-usage");
    }
}
