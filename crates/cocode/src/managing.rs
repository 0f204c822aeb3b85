//! The one manager of a command: what settings, environment and the place for our own files decide
//! about it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use cocode_client::{
    Backoff, Concurrency, Health, ListCache, ListReading, Manager, ManagerOptions, ServerLogs,
    Start, StartLimiter, Telemetry, UsageLog, When,
};
use cocode_config::{HealthSettings, Settings, StartConcurrency};
use cocode_core::OutputLimits;

use crate::environment::Environment;
use crate::error::{CliError, Code};
use crate::interrupt::Interrupts;
use crate::manage::logs;
use crate::results;
use crate::target::log_level;
use crate::telemetry;
use crate::workspace::Workspace;

/// How long the end of the program waits for logs and counts to be written.
const WRITTEN_WITHIN: Duration = Duration::from_millis(500);

/// What a manager is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// One thing, and then the end: servers are started when they are asked for something and tried
    /// once, and nothing is read that nobody wants.
    OneThing,
    /// Keeping servers connected for as long as somebody watches.
    Watching,
    /// Serving clients for as long as they come: servers are started when they are needed, or when
    /// nobody knows what they offer.
    Serving,
}

/// Everything that a manager is made with, apart from its servers. Outlives the runtime that the
/// manager runs on.
pub(crate) struct Setup {
    options: ManagerOptions,
    logs: ServerLogs,
    // The last: what is left of telemetry is delivered when everybody who records is gone.
    _telemetry: telemetry::Guard,
}

/// Decides about managers of other workspaces with the same place for our own files: what they write
/// down and record goes where that of the first one goes, which has to outlive them.
#[derive(Clone, Debug)]
pub(crate) struct SetupForOthers(ManagerOptions);

impl SetupForOthers {
    pub(crate) fn options(
        &self,
        purpose: Purpose,
        workspace: &Workspace,
    ) -> Result<ManagerOptions, CliError> {
        let Self(first) = self;
        let (mut options, _own) = options(purpose, workspace, first.telemetry.clone())?;
        options.logs = first.logs.clone();
        options.start_limiter = first.start_limiter.clone();
        if !options.usage.is_off() && !first.usage.is_off() {
            options.usage = first.usage.clone();
        }
        Ok(options)
    }
}

impl Setup {
    pub(crate) fn new(purpose: Purpose, workspace: &Workspace) -> Result<Self, CliError> {
        let (telemetry, guard) = telemetry::install(&workspace.environment, &workspace.printer);
        let (options, logs) = options(purpose, workspace, telemetry)?;
        Ok(Self {
            options,
            logs,
            _telemetry: guard,
        })
    }

    /// What the managers log to.
    pub(crate) fn logs(&self) -> &ServerLogs {
        &self.logs
    }

    /// What decides about managers of other workspaces.
    pub(crate) fn for_others(&self) -> SetupForOthers {
        SetupForOthers(self.options.clone())
    }

    /// For a server that stands in no file: its name, under which things would be kept, is that of
    /// all such servers.
    #[must_use]
    pub(crate) fn without_memory(mut self) -> Self {
        self.options.cache = ListCache::off();
        self.options.logs = ServerLogs::off();
        self.options.usage = UsageLog::off();
        self
    }

    /// Makes the manager, within a runtime.
    pub(crate) fn manager(&self, change: impl FnOnce(&mut ManagerOptions)) -> Manager {
        Manager::new(self.options(change))
    }

    /// What a manager is made with.
    pub(crate) fn options(&self, change: impl FnOnce(&mut ManagerOptions)) -> ManagerOptions {
        let mut options = self.options.clone();
        change(&mut options);
        options
    }

    /// Writes down what is still to be written.
    pub(crate) fn end(self) {
        let until = Instant::now() + WRITTEN_WITHIN;
        if !self.logs.flush(until) {
            tracing::debug!("the logs of servers were not written to their end in time");
        }
        if !self.options.usage.flush(until) {
            tracing::debug!("the last calls of tools were not counted in time");
        }
    }
}

fn options(
    purpose: Purpose,
    workspace: &Workspace,
    telemetry: Telemetry,
) -> Result<(ManagerOptions, ServerLogs), CliError> {
    let Environment {
        tool_timeout,
        max_output_tokens,
        ..
    } = &workspace.environment;
    let settings = &workspace.config()?.settings;
    let (tool_timeout, output) = (
        tool_timeout.as_deref().map(milliseconds).transpose()?,
        max_output_tokens.as_deref().map(tokens).transpose()?,
    );
    let logs = ServerLogs::open(
        logs::directory(workspace),
        logs::limits(&settings.retention),
    );
    let options = ManagerOptions {
        start: start(purpose),
        start_limiter: start_limiter(&settings.health),
        health: health(&settings.health),
        tool_timeout,
        tool_total_timeout: tool_total_timeout(&settings.health),
        output: output.unwrap_or_default(),
        results: Some(results::store(workspace)?),
        lists: match purpose {
            Purpose::OneThing => ListReading::OnDemand,
            Purpose::Watching | Purpose::Serving => ListReading::Kept,
        },
        cache: list_cache(workspace),
        logs: logs.clone(),
        telemetry,
        usage: usage_log(workspace, settings),
        log_level: log_level(workspace.output.verbose),
        ..ManagerOptions::default()
    };
    Ok((options, logs))
}

/// Where lists of servers are remembered.
pub(crate) fn list_cache(workspace: &Workspace) -> ListCache {
    ListCache::open(workspace.places.state.join("cache").join("lists"))
}

/// Where calls of tools are counted, unless nobody wants that.
fn usage_log(workspace: &Workspace, settings: &Settings) -> UsageLog {
    let is_wanted = settings.retention.record_usage.as_ref();
    if is_wanted.is_none_or(|setting| setting.value) {
        UsageLog::open(usage_directory(workspace))
    } else {
        UsageLog::off()
    }
}

/// Where the counts of calls are.
pub(crate) fn usage_directory(workspace: &Workspace) -> PathBuf {
    workspace.places.state.join("usage")
}

/// Ends every connection politely, unless nobody wants to wait for that.
pub(crate) async fn close(manager: &Manager, interrupts: &mut Interrupts) {
    tokio::select! {
        () = manager.shutdown() => {}
        // What is left of the servers ends without us.
        _exit = interrupts.next() => {}
    }
}

fn start(purpose: Purpose) -> Start {
    let (when, once) = match purpose {
        Purpose::OneThing => (When::OnlyNeeded, true),
        Purpose::Watching => (When::AtOnce, false),
        Purpose::Serving => (When::Needed, false),
    };
    Start { when, once }
}

fn start_limiter(settings: &HealthSettings) -> StartLimiter {
    StartLimiter::new(match settings.start_concurrency.value {
        StartConcurrency::AtMost(most) => {
            Concurrency::AtMost(usize::try_from(most).unwrap_or(usize::MAX))
        }
        StartConcurrency::All => Concurrency::All,
    })
}

pub(crate) fn health(settings: &HealthSettings) -> Health {
    let HealthSettings {
        start_concurrency: _,
        ping_interval,
        ping_timeout,
        max_failures,
        reconnect_attempts,
        backoff_initial,
        backoff_max,
        backoff_multiplier,
        list_cache_ttl,
        invalidate_on_list_changed,
        idle_stop,
        tool_total_timeout: _,
    } = settings;
    let count = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    Health {
        ping_interval: ping_interval.value,
        ping_timeout: ping_timeout.value,
        max_failures: count(max_failures.value),
        invalidate_on_list_changed: invalidate_on_list_changed.value,
        list_ttl: list_cache_ttl.value,
        idle_stop: idle_stop.as_ref().map(|setting| setting.value),
        reconnect: Backoff {
            first: backoff_initial.value,
            longest: backoff_max.value,
            multiplier: backoff_multiplier.value,
            attempts: count(reconnect_attempts.value),
        },
        ..Health::default()
    }
}

pub(crate) fn tool_total_timeout(settings: &HealthSettings) -> Option<Duration> {
    let given = settings.tool_total_timeout.as_ref();
    given.map(|setting| setting.value)
}

fn milliseconds(text: &str) -> Result<Duration, CliError> {
    positive("MCP_TOOL_TIMEOUT", "of milliseconds", text).map(Duration::from_millis)
}

fn tokens(text: &str) -> Result<OutputLimits, CliError> {
    positive("MAX_MCP_OUTPUT_TOKENS", "of tokens", text).map(OutputLimits::with_cap)
}

/// A number in a variable.
fn positive(variable: &str, unit: &str, text: &str) -> Result<u64, CliError> {
    let number: Option<u64> = text.trim().parse().ok();
    number.filter(|number| *number > 0).ok_or_else(|| {
        let message = format!("the variable {variable} is `{text}`, which is no number {unit}");
        CliError::new(Code::InvalidUsage, message).hint(format!(
            "set it to a whole number {unit}, or leave it unset"
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cocode_client::{Backoff, Health};
    use cocode_config::Settings;

    use super::{milliseconds, tokens};

    #[test]
    fn backoff_and_list_settings_reach_the_manager() {
        let mut settings = Settings::default().health;
        let health = super::health(&settings);
        assert_eq!(health, Health::default());
        settings.backoff_initial.value = Duration::from_millis(7);
        settings.backoff_max.value = Duration::from_millis(70);
        settings.backoff_multiplier.value = 3.0;
        settings.list_cache_ttl.value = Duration::from_secs(9);
        settings.invalidate_on_list_changed.value = false;
        let reconnect = Backoff {
            first: Duration::from_millis(7),
            longest: Duration::from_millis(70),
            multiplier: 3.0,
            ..Backoff::default()
        };
        let expected = Health {
            reconnect,
            list_ttl: Duration::from_secs(9),
            invalidate_on_list_changed: false,
            ..Health::default()
        };
        assert_eq!(super::health(&settings), expected);
    }

    #[test]
    fn variables_hold_whole_numbers_above_zero() {
        assert_eq!(milliseconds(" 1500 ").unwrap(), Duration::from_millis(1500));
        let limits = tokens("500").unwrap();
        assert_eq!((limits.warn_tokens, limits.cap_tokens), (500, 500));
        for bad in ["0", "-1", "1.5", "10s", "many"] {
            let error = milliseconds(bad).unwrap_err();
            assert_eq!(error.code, "invalid-usage", "{bad}");
            assert!(error.message.contains("MCP_TOOL_TIMEOUT"), "{bad}");
            assert!(tokens(bad).is_err(), "{bad}");
        }
    }
}
