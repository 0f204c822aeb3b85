//! Where logs go and how many there are: nothing but errors unless asked, stderr unless told
//! otherwise. stdout belongs to results.

use std::fs::File;
use std::str::FromStr as _;
use std::sync::{Arc, Mutex};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::Layer;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::OutputArgs;
use crate::environment::Environment;
use crate::error::{CliError, Code};
use crate::printer::{ErrWriter, Printer};

/// Begins to log.
pub(crate) fn start(
    args: &OutputArgs,
    environment: &Environment,
    printer: &Arc<Printer>,
) -> Result<(), CliError> {
    let filter = filter(args, environment.log_filter.as_deref())?;
    let registry = tracing_subscriber::registry().with(filter);
    let started = if let Some(path) = &args.log_file {
        let file = File::options().append(true).create(true).open(path);
        let file = file.map_err(|error| CliError::file("write the log file", path, &error))?;
        let layer = Layer::new().with_ansi(false).with_writer(Mutex::new(file));
        registry.with(layer).try_init()
    } else {
        let printer = Arc::clone(printer);
        let layer = Layer::new()
            .with_ansi(printer.error_paint().on)
            .without_time()
            .with_writer(move || ErrWriter(Arc::clone(&printer)));
        registry.with(layer).try_init()
    };
    started
        .map_err(|error| CliError::new(Code::SetupFailed, "cannot start logging").because(&error))
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
    let ours = [
        "cocode",
        "cocode_auth",
        "cocode_client",
        "cocode_config",
        "cocode_gateway",
        "cocode_process",
        "cocode_wire",
    ];
    let targets = Targets::new().with_default(level.min(LevelFilter::WARN));
    Ok(ours.iter().fold(targets, |targets, target| {
        targets.with_target(*target, level)
    }))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tracing_subscriber::filter::LevelFilter;

    use super::filter;
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
        }
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
