//! All output of the program: results on stdout, everything else on stderr.
//!
//! Text of a server is tamed where a terminal would obey it, and left as it is for everybody else.
//! A reader of stdout that goes away (`| head`) is no error: what is left is dropped quietly. The
//! progress bar lives on the last line of stderr and makes room for every other line.

mod aside;

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::aside::{Aside, Stream};
use crate::args::{Color, OutputArgs};
use crate::arguments::quoted;
use crate::environment::Environment;
use crate::error::{CliError, Code};
use crate::text::{plain, tame};

/// The least time between two drawings of the progress bar: a flood of reports must not become a
/// flood of output.
const BAR_INTERVAL: Duration = Duration::from_millis(50);

/// The one way to the terminal.
#[derive(Debug)]
pub(crate) struct Printer {
    settings: Settings,
    state: Mutex<State>,
    diversion: Mutex<Diversion>,
    /// Writes in our place, where others wait for this program.
    aside: Mutex<Option<Aside>>,
}

/// Who hears what is meant for stderr, while the terminal belongs to somebody.
type Hearer = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Default)]
struct Diversion(Option<Hearer>);

impl std::fmt::Debug for Diversion {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(hearer) = self;
        formatter
            .debug_tuple("Diversion")
            .field(&hearer.is_some())
            .finish()
    }
}

/// What decides how things are printed.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact about the streams"
)]
struct Settings {
    json: bool,
    quiet: bool,
    verbose: bool,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    stdout_color: bool,
    stderr_color: bool,
}

#[derive(Debug, Default)]
struct State {
    /// A progress bar is on the last line of stderr.
    bar: bool,
    /// When the bar was drawn last.
    bar_drawn: Option<Instant>,
    /// Nobody reads stdout any more.
    broken: bool,
}

/// Stderr for those who write by themselves, such as logs and prompts.
#[derive(Clone, Debug)]
pub(crate) struct ErrWriter(pub(crate) Arc<Printer>);

impl io::Write for ErrWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self
            .0
            .divert_line(String::from_utf8_lossy(bytes).trim_end())
        {
            return Ok(bytes.len());
        }
        if let Some(aside) = &*self.0.aside() {
            aside.write(Stream::Err, bytes.to_vec());
            return Ok(bytes.len());
        }
        clear_bar(&mut self.0.state());
        io::stderr().lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

/// How a piece of text stands out, where there are colors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Style {
    Bold,
    Dim,
    Red,
    Yellow,
}

/// Gives text its style, or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    pub(crate) on: bool,
}

impl Paint {
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        if !self.on || text.is_empty() {
            return text.to_owned();
        }
        let code = match style {
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Red => "1;31",
            Style::Yellow => "1;33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

impl Printer {
    pub(crate) fn new(args: &OutputArgs, environment: &Environment) -> Self {
        let (stdout_is_terminal, stderr_is_terminal) =
            (io::stdout().is_terminal(), io::stderr().is_terminal());
        let color = |is_terminal| match args.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => is_terminal && !environment.no_color,
        };
        let settings = Settings {
            json: args.json,
            quiet: args.quiet,
            verbose: args.verbose > 0,
            stdout_is_terminal,
            stderr_is_terminal,
            stdout_color: color(stdout_is_terminal),
            stderr_color: color(stderr_is_terminal),
        };
        Self {
            settings,
            state: Mutex::default(),
            diversion: Mutex::default(),
            aside: Mutex::default(),
        }
    }

    /// From here on, what is meant for stderr goes to somebody who has the terminal, or to stderr again.
    pub(crate) fn divert(&self, to: Option<Hearer>) {
        *self.diversion() = Diversion(to);
    }

    /// Whether somebody else hears this.
    fn divert_line(&self, line: &str) -> bool {
        let hearer = self.diversion().0.clone();
        let is_diverted = hearer.is_some();
        if let Some(hear) = hearer {
            hear(line);
        }
        is_diverted
    }

    fn diversion(&self) -> MutexGuard<'_, Diversion> {
        self.diversion
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether results are wanted as the server sent them.
    pub(crate) fn json(&self) -> bool {
        self.settings.json
    }

    pub(crate) fn quiet(&self) -> bool {
        self.settings.quiet
    }

    pub(crate) fn verbose(&self) -> bool {
        self.settings.verbose
    }

    pub(crate) fn stdout_is_terminal(&self) -> bool {
        self.settings.stdout_is_terminal
    }

    pub(crate) fn stderr_is_terminal(&self) -> bool {
        self.settings.stderr_is_terminal
    }

    /// Whether a progress bar would be seen and is wanted.
    pub(crate) fn shows_bar(&self) -> bool {
        self.settings.stderr_is_terminal && !self.settings.quiet
    }

    /// Whether what is on the screen may be drawn again in place.
    pub(crate) fn shows_live(&self) -> bool {
        self.settings.stdout_is_terminal && !self.settings.json && !self.settings.verbose
    }

    /// How many lines the terminal has.
    pub(crate) fn height(&self) -> usize {
        let size = terminal_size::terminal_size().filter(|_| self.settings.stdout_is_terminal);
        size.map_or(usize::MAX / 4, |(_, height)| usize::from(height.0))
    }

    /// The paint for stdout.
    pub(crate) fn paint(&self) -> Paint {
        let on = self.settings.stdout_color;
        Paint { on }
    }

    /// How wide lines on stdout may be; without a terminal, as wide as they are.
    pub(crate) fn width(&self) -> usize {
        let size = terminal_size::terminal_size().filter(|_| self.settings.stdout_is_terminal);
        size.map_or(usize::MAX / 4, |(width, _)| usize::from(width.0))
    }

    /// A server's text as stdout may have it: without escape sequences if it is a terminal.
    pub(crate) fn for_stdout(&self, text: String) -> String {
        tame_if(self.settings.stdout_is_terminal, text)
    }

    /// A server's text as stderr may have it: without escape sequences if it is a terminal.
    pub(crate) fn for_stderr(&self, text: String) -> String {
        tame_if(self.settings.stderr_is_terminal, text)
    }

    /// Writes to stdout, as it is.
    pub(crate) fn out(&self, bytes: impl AsRef<[u8]>) -> Result<(), CliError> {
        if let Some(aside) = &*self.aside() {
            aside.write(Stream::Out, bytes.as_ref().to_vec());
            return Ok(());
        }
        let mut state = self.state();
        if state.broken {
            return Ok(());
        }
        if self.settings.stdout_is_terminal {
            clear_bar(&mut state);
        }
        let mut stdout = io::stdout().lock();
        let written = stdout
            .write_all(bytes.as_ref())
            .and_then(|()| stdout.flush());
        match written {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                state.broken = true;
                Ok(())
            }
            Err(error) => {
                Err(CliError::new(Code::FileError, "cannot write to stdout").because(&error))
            }
        }
    }

    /// Whether anybody may still read stdout.
    pub(crate) fn is_read(&self) -> bool {
        let is_broken = self.aside().as_ref().is_some_and(Aside::is_broken);
        !is_broken && !self.state().broken
    }

    /// Writes a line to stdout.
    pub(crate) fn out_line(&self, line: &str) -> Result<(), CliError> {
        self.out(format!("{line}\n"))
    }

    /// Writes a line to stderr. There is nobody to tell if that fails.
    pub(crate) fn err_line(&self, line: &str) {
        if self.divert_line(line) {
            return;
        }
        if let Some(aside) = &*self.aside() {
            aside.write(Stream::Err, format!("{line}\n").into_bytes());
            return;
        }
        let mut state = self.state();
        clear_bar(&mut state);
        let _nobody_listens = writeln!(io::stderr().lock(), "{line}");
    }

    /// Writes text to stderr as it is, ending its last line.
    pub(crate) fn err_text(&self, text: &str) {
        self.err_line(text.strip_suffix('\n').unwrap_or(text));
    }

    /// Warns, unless nobody wants to hear.
    pub(crate) fn warn(&self, message: &str) {
        if self.settings.quiet {
            return;
        }
        if self.settings.json {
            return self.err_line(&format!("{{\"warning\":{}}}", quoted(message)));
        }
        let label = self.error_paint().paint(Style::Yellow, "warning:");
        self.err_line(&format!("{label} {}", plain(message)));
    }

    /// Names a file that was written while stdout belongs to the server's own JSON.
    pub(crate) fn saved(&self, path: &str) {
        self.err_line(&format!("{{\"saved\":{}}}", quoted(path)));
    }

    /// Says how old a list is while stdout belongs to the server's own JSON.
    pub(crate) fn cached(&self, server: &str, seconds: u64, is_fresh: bool) {
        self.err_line(&format!(
            "{{\"cached\":{{\"server\":{},\"ageSeconds\":{seconds},\"fresh\":{is_fresh}}}}}",
            quoted(server)
        ));
    }

    /// Says something that is good to know for people.
    pub(crate) fn note(&self, message: &str) {
        if !self.settings.quiet && !self.settings.json {
            self.err_line(&plain(message));
        }
    }

    /// Says why the program failed.
    pub(crate) fn error(&self, error: &CliError) {
        if self.settings.json {
            return self.err_line(&error.to_json());
        }
        let paint = self.error_paint();
        for (index, line) in error.to_lines().iter().enumerate() {
            if index == 0 {
                self.err_line(&format!("{} {line}", paint.paint(Style::Red, "error:")));
            } else {
                self.err_line(line);
            }
        }
    }

    /// Shows this on the last line of the terminal until something else is written.
    pub(crate) fn bar(&self, line: &str) {
        if self.diversion().0.is_some() {
            return;
        }
        let width = terminal_size::terminal_size_of(io::stderr())
            .map_or(80, |(width, _)| usize::from(width.0));
        let line: String = line.chars().take(width.saturating_sub(1)).collect();
        let mut state = self.state();
        if state.bar
            && state
                .bar_drawn
                .is_some_and(|drawn| drawn.elapsed() < BAR_INTERVAL)
        {
            return;
        }
        state.bar = true;
        state.bar_drawn = Some(Instant::now());
        let mut stderr = io::stderr().lock();
        let _nobody_listens = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
    }

    /// Takes the progress bar away.
    pub(crate) fn end_bar(&self) {
        clear_bar(&mut self.state());
    }

    /// Begins a new line at a terminal, which shows `^C` behind whatever is on the last one.
    pub(crate) fn leave_line(&self) {
        let mut state = self.state();
        if state.bar {
            clear_bar(&mut state);
        } else if self.settings.stderr_is_terminal {
            drop(state);
            self.err_line("");
        }
    }

    /// The paint for stderr.
    pub(crate) fn error_paint(&self) -> Paint {
        let on = self.settings.stderr_color && self.diversion().0.is_none();
        Paint { on }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tame_if(is_terminal: bool, text: String) -> String {
    if is_terminal { tame(&text) } else { text }
}

fn clear_bar(state: &mut State) {
    if std::mem::take(&mut state.bar) {
        let mut stderr = io::stderr().lock();
        let _nobody_listens = stderr.write_all(b"\r\x1b[K").and_then(|()| stderr.flush());
    }
}

/// Prints one value as a line of JSON.
pub(crate) fn print_json(printer: &Printer, value: &impl serde::Serialize) -> Result<(), CliError> {
    let line = serde_json::to_string(value)
        .map_err(|error| CliError::new(Code::SetupFailed, "cannot write JSON").because(&error))?;
    printer.out_line(&line)
}
