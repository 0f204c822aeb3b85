//! What the soak of a gateway is told to do.

use std::fmt;
use std::time::Duration;

use crate::Failure;

const USAGE: &str = "usage: cargo xtask soak --gateway [--seconds 600] [--sessions 1000] \
    [--in-flight 200] [--servers 10] [--seed N]";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// How long servers are killed.
    pub(crate) time: Duration,
    /// Clients that are there at any time.
    pub(crate) sessions: usize,
    /// Calls that are under way at any time.
    pub(crate) in_flight: usize,
    pub(crate) servers: usize,
    pub(crate) seed: u64,
}

impl Plan {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut plan = Self {
            time: Duration::from_mins(10),
            sessions: 1000,
            in_flight: 200,
            servers: 10,
            seed: fastrand::u64(..),
        };
        let mut arguments = arguments.iter();
        while let Some(flag) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            match flag.as_str() {
                "--seconds" => plan.time = Duration::from_secs(value.parse()?),
                "--sessions" => plan.sessions = value.parse()?,
                "--in-flight" => plan.in_flight = value.parse()?,
                "--servers" => plan.servers = value.parse()?,
                "--seed" => plan.seed = value.parse()?,
                _ => return Err(USAGE.into()),
            }
        }
        if plan.in_flight == 0 || plan.servers == 0 || plan.sessions < plan.in_flight {
            return Err("at least one call, one server, and a session for every call".into());
        }
        Ok(plan)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            time,
            sessions,
            in_flight,
            servers,
            seed,
        } = self;
        write!(
            formatter,
            "soak of a gateway: {sessions} sessions, {in_flight} calls at once over {servers} servers, \
             killed for {} s, seed {seed}",
            time.as_secs()
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Plan;

    fn plan(words: &str) -> Option<Plan> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        Plan::parse(&words).ok()
    }

    #[test]
    fn a_plan_is_read_from_words_and_nonsense_is_refused() {
        let expected = Plan {
            time: Duration::from_secs(5),
            sessions: 50,
            in_flight: 20,
            servers: 3,
            seed: 9,
        };
        let words = "--seconds 5 --sessions 50 --in-flight 20 --servers 3 --seed 9";
        assert_eq!(plan(words), Some(expected));
        assert_eq!(plan("--sessions"), None);
        assert_eq!(plan("--sessions 10 --in-flight 20"), None);
        assert_eq!(plan("--calls 1"), None);
    }
}
