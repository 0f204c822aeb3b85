//! The command line.

use crate::era::Era;

const USAGE: &str = "usage: cocode-fixture stdio|http [--port PORT] [--era both|legacy|modern]";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) transport: Transport,
    pub(crate) era: Era,
}

/// How clients come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    /// Port 0 is any that is free.
    Http {
        port: u16,
    },
}

impl Arguments {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, &'static str> {
        let mut words = words.into_iter();
        let mut transport = match words.next().as_deref() {
            Some("stdio") => Transport::Stdio,
            Some("http") => Transport::Http { port: 0 },
            _ => return Err(USAGE),
        };
        let mut era = Era::Both;
        while let Some(option) = words.next() {
            let value = words.next().ok_or(USAGE)?;
            match (option.as_str(), &mut transport) {
                ("--era", _) => era = Era::parse(&value).ok_or(USAGE)?,
                ("--port", Transport::Http { port }) => {
                    *port = value.parse().map_err(|_not_a_port| USAGE)?;
                }
                _ => return Err(USAGE),
            }
        }
        Ok(Self { transport, era })
    }
}

#[cfg(test)]
mod tests {
    use super::{Arguments, Transport, USAGE};
    use crate::era::Era;

    fn parse(line: &str) -> Result<Arguments, &'static str> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_follow_the_transport() {
        let expected = Arguments {
            transport: Transport::Http { port: 8080 },
            era: Era::Legacy,
        };
        assert_eq!(parse("http --port 8080 --era legacy"), Ok(expected));
        let expected = Arguments {
            transport: Transport::Stdio,
            era: Era::Both,
        };
        assert_eq!(parse("stdio"), Ok(expected));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "",
            "sse",
            "stdio --port 1",
            "http --port x",
            "http --era",
            "http --era old",
        ] {
            assert_eq!(parse(line), Err(USAGE), "{line}");
        }
    }
}
