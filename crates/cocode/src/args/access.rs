//! The command line of who may use a gateway, and of what was written down of it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueHint};

/// The longest time that a token may be told to be good for.
const MAX_EXPIRES: Duration = Duration::from_hours(3660 * 24);

pub(crate) const AUDIT_HELP: &str = "\
A gateway whose clients say who they are writes down every call: who called what, when, and how it \
ended. Each line holds the hash of the one before. Settings are in [gateway.audit] of config.toml.

Examples:
  cocode audit show --limit 20 --principal ci
  cocode audit verify";

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Make a token, and print it: this once, and nothing else on stdout
    Add {
        /// Whose it is: the name that rules and the audit log know them by
        name: String,
        /// Let its owner use the management API and the dashboard
        #[arg(long)]
        admin: bool,
        /// How long it is good for, as in `12h`, `30d` or `4w` [default: until it is revoked]
        #[arg(long, value_name = "TIME", value_parser = expires)]
        expires: Option<Duration>,
    },
    /// List the tokens, and when they were used
    #[command(visible_alias = "ls")]
    List,
    /// Take a token back: what its owner has open ends
    #[command(visible_alias = "rm")]
    Revoke {
        /// Whose it is
        name: String,
    },
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum AuditVerb {
    /// Show the last entries, the newest last
    Show {
        /// How many at most
        #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u64).range(1..=1000))]
        limit: u64,
        /// Only what this one did, among the last 1000 entries
        #[arg(long, value_name = "NAME")]
        principal: Option<String>,
        /// Only what was done with this server, among the last 1000 entries
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// The directory of the log, if it is another than that of your gateways
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: Option<PathBuf>,
    },
    /// Check that every entry is as it was written, and that none is missing
    ///
    /// Ends with 0 if so, and with 1 if not.
    Verify {
        /// The directory of the log, if it is another than that of your gateways
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: Option<PathBuf>,
        /// An entry that is known to have been there, as in `120:1f0c…`: its number and its hash
        #[arg(long, value_name = "NUMBER:HASH")]
        expect: Option<String>,
    },
}

/// A number and a unit.
fn expires(text: &str) -> Result<Duration, &'static str> {
    const LIKE: &str = "write a number and s, m, h, d or w, as in 12h or 30d";
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).ok_or(LIKE)?;
    let number: u64 = number.parse().map_err(|_bad| LIKE)?;
    let seconds = match unit {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        "w" => 7 * 24 * 60 * 60,
        _ => return Err(LIKE),
    };
    let duration = Duration::from_secs(number.saturating_mul(seconds));
    if duration.is_zero() {
        return Err("a token that is good for no time lets nobody in");
    }
    if duration > MAX_EXPIRES {
        return Err("that is more than ten years: leave it out, and revoke the token one day");
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::expires;

    #[test]
    fn times_are_a_number_and_a_unit() {
        for (text, seconds) in [
            ("1s", 1),
            ("90m", 5400),
            ("12h", 43_200),
            ("30d", 2_592_000),
            ("4w", 2_419_200),
            ("3660d", 316_224_000),
        ] {
            assert_eq!(expires(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for wrong in [
            "",
            "d",
            "30",
            "30 d",
            "-1d",
            "1.5d",
            "1y",
            "0d",
            "3661d",
            "é",
            "99999999999999999999d",
            "9999999999999999999w",
        ] {
            assert!(expires(wrong).is_err(), "{wrong}");
        }
    }
}
