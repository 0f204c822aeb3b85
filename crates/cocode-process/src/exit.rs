//! How a program ended.

use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReport {
    /// It exited by itself with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It is gone, but its guard was killed before it could say how it ended.
    Unknown,
}

impl ExitReport {
    /// Whether the program exited with code 0.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }

    /// Reads the status word of `waitpid`.
    pub(crate) fn from_wait_status(status: i32) -> Self {
        let status = ExitStatus::from_raw(status);
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unknown,
        }
    }
}

impl fmt::Display for ExitReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(formatter, "exit code {code}"),
            Self::Signal(signal) => match signal_name(signal) {
                Some(name) => write!(formatter, "signal {signal} ({name})"),
                None => write!(formatter, "signal {signal}"),
            },
            Self::Unknown => write!(formatter, "unknown exit status (its guard was killed)"),
        }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGVTALRM => "SIGVTALRM",
        libc::SIGPROF => "SIGPROF",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_read_as_people_say_them() {
        let shown = [
            ExitReport::from_wait_status(3 << 8),
            ExitReport::from_wait_status(9),
            ExitReport::from_wait_status(128 + 11),
            ExitReport::Signal(40),
        ]
        .map(|report| report.to_string());
        assert_eq!(
            shown,
            [
                "exit code 3",
                "signal 9 (SIGKILL)",
                "signal 11 (SIGSEGV)",
                "signal 40"
            ]
        );
    }
}
