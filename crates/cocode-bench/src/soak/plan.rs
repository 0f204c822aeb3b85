//! What the soak is told to do.

use std::fmt;
use std::time::Duration;

use crate::Failure;

const USAGE: &str =
    "usage: cargo xtask soak [--seconds 60] [--calls 10000] [--servers 50] [--seed N]";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// How long servers are killed in the storm that counts most.
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

    /// The storms, in their order. Few callers show small leaks, which the memory that an allocator
    /// keeps after ten thousand would hide. Each kind comes twice: what has been needed once is
    /// there already when memory is compared.
    pub(crate) fn phases(&self) -> [Phase; 4] {
        let phase = |callers, time, growth| Phase {
            callers,
            time,
            growth,
        };
        let few = self.calls.div_ceil(FEW);
        [
            phase(few, self.time / 6, None),
            phase(few, self.time / 6, Some(LITTLE)),
            phase(self.calls, self.time / 3, None),
            phase(self.calls, self.time, Some(MUCH)),
        ]
    }
}

/// One storm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Phase {
    /// How many calls are under way at any time.
    pub(crate) callers: usize,
    /// How long servers are killed.
    pub(crate) time: Duration,
    /// What memory may have grown by since the end of the phase before.
    pub(crate) growth: Option<Growth>,
}

/// So much more: the to and fro of an allocator under a load that is never twice the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Growth {
    pub(crate) percent: u64,
    pub(crate) mebibytes: u64,
}

impl Growth {
    pub(crate) fn limit(self, before_kib: u64) -> u64 {
        before_kib * (100 + self.percent) / 100 + self.mebibytes * 1024
    }
}

/// One caller in so many is few.
const FEW: usize = 50;
const LITTLE: Growth = Growth {
    percent: 10,
    mebibytes: 4,
};
const MUCH: Growth = Growth {
    percent: 50,
    mebibytes: 32,
};

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
            "soak: {calls} calls at once over {servers} servers, killed for {} s after a warm-up, seed {seed}",
            time.as_secs()
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Plan;

    #[test]
    fn growth_is_in_percent_and_on_top() {
        assert_eq!(super::MUCH.limit(1000), 1500 + 32 * 1024);
    }

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
