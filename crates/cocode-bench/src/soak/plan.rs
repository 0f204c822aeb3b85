//! What the soak is told to do.

use std::fmt;
use std::time::Duration;

use crate::Failure;

const USAGE: &str =
    "usage: cargo xtask soak [--seconds 60] [--calls 10000] [--servers 50] [--seed N]";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// How long servers are killed, after the warm-up.
    pub(crate) time: Duration,
    /// How many calls are under way at any time.
    pub(crate) calls: usize,
    pub(crate) servers: usize,
    pub(crate) seed: u64,
}

impl Plan {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut plan = Self {
            time: Duration::from_mins(1),
            calls: 10_000,
            servers: 50,
            seed: fastrand::u64(..),
        };
        let mut arguments = arguments.iter();
        while let Some(flag) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            match flag.as_str() {
                "--seconds" => plan.time = Duration::from_secs(value.parse()?),
                "--calls" => plan.calls = value.parse()?,
                "--servers" => plan.servers = value.parse()?,
                "--seed" => plan.seed = value.parse()?,
                _ => return Err(USAGE.into()),
            }
        }
        if plan.calls == 0 || plan.servers == 0 {
            return Err("at least one call and one server".into());
        }
        Ok(plan)
    }

    /// How long the same goes on before memory is looked at for the first time.
    pub(crate) fn warm_up(&self) -> Duration {
        self.time / 3
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            time,
            calls,
            servers,
            seed,
        } = self;
        write!(
            formatter,
            "soak: {calls} calls at once over {servers} servers, {} s to warm up and {} s that count, seed {seed}",
            self.warm_up().as_secs_f64().round(),
            time.as_secs()
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Plan;

    fn plan(words: &[&str]) -> Option<Plan> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Plan::parse(&words).ok()
    }

    #[test]
    fn a_plan_is_read_from_words_and_nonsense_is_refused() {
        let words = [
            "--seconds",
            "5",
            "--calls",
            "7",
            "--servers",
            "3",
            "--seed",
            "9",
        ];
        let expected = Plan {
            time: Duration::from_secs(5),
            calls: 7,
            servers: 3,
            seed: 9,
        };
        assert_eq!(plan(&words), Some(expected));
        assert_eq!(plan(&["--calls"]), None);
        assert_eq!(plan(&["--calls", "0"]), None);
        assert_eq!(plan(&["--what", "1"]), None);
    }
}
