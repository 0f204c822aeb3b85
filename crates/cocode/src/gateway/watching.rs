//! What watches over calls, as the settings of the gateway say.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use cocode_access::{
    AuditLog, LimitPlan, Limits, Policies, PrincipalPolicy, ServerLimit, TokenKeeper, WhenFailing,
};
use cocode_admin::CallBook;
use cocode_config::{AuditFailure, Config, OTHERS, PrincipalSettings};

use super::oversight::{Audit, Since, Watch};
use crate::error::CliError;
use crate::records::Records;
use crate::workspace::Workspace;

/// How long the end waits for what was done to be written down.
const WRITTEN_WITHIN: Duration = Duration::from_secs(5);

impl Watch {
    /// By the settings, for a gateway whose clients have to say who they are, or not until there is a token.
    pub(crate) fn new(
        calls: &CallBook,
        is_authenticated: bool,
        tokens: &Arc<TokenKeeper>,
        records: &dyn Records,
        workspace: &Workspace,
    ) -> Result<Self, CliError> {
        let config = workspace.config()?;
        let settings = &config.settings.gateway.audit;
        let since = if settings.is_enabled(is_authenticated) {
            Some(Since::Always)
        } else if settings.is_enabled(true) {
            Some(Since::FirstToken(Arc::clone(tokens)))
        } else {
            None
        };
        let when_failing = match settings.on_failure.value {
            AuditFailure::Refuse => WhenFailing::Refuse,
            AuditFailure::Continue => WhenFailing::GoOn,
        };
        let audit = since.map(|since| {
            Arc::new(Audit {
                log: AuditLog::start(records.audit(), when_failing),
                with_arguments: settings.arguments.value,
                since,
            })
        });
        Ok(Self {
            calls: calls.clone(),
            limits: Limits::new(plan(config)),
            audit,
        })
    }

    /// Finds out whether what is done can be written down, before anything is. The log itself says it if
    /// that is not so.
    pub(crate) async fn begin(&self) {
        if let Some(audit) = self.audit() {
            let begun = audit.log.begin(env!("CARGO_PKG_VERSION"), WRITTEN_WITHIN);
            let _told_already = begun.await;
        }
    }

    /// What those who look after the gateway should know of it.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let failing = self.audit().and_then(|audit| audit.log.health().failing);
        let failing = failing.map(|why| {
            // What becomes of calls meanwhile is for `on_failure` to say.
            format!("the audit log cannot be written: {why}")
        });
        failing.into_iter().collect()
    }

    /// Limits are as this configuration says from now on.
    pub(crate) fn follow(&self, config: &Config) {
        self.limits.replace(plan(config));
    }

    /// Writes down what is still to be written down.
    pub(crate) async fn close(&self) {
        if let Some(audit) = &self.audit
            && let Err(error) = audit.log.flush(WRITTEN_WITHIN).await
        {
            tracing::error!(%error, "what was done is not written down to its end");
        }
    }
}

/// How much may be done.
fn plan(config: &Config) -> LimitPlan {
    let gateway = &config.settings.gateway;
    let limits = &gateway.limits;
    let value = |setting: &Option<cocode_config::Setting<u64>>| {
        setting.as_ref().map(|setting| setting.value)
    };
    let named = gateway.principals.iter();
    let named = named.filter(|(name, _)| *name != OTHERS);
    // A name that nobody can have limits nobody.
    let named: BTreeMap<_, _> = named
        .filter_map(|(name, settings)| Some((name.parse().ok()?, policy(settings))))
        .collect();
    let servers = limits.servers.iter();
    let servers: BTreeMap<_, _> = servers
        .filter_map(|(name, limit)| {
            let limit = limit_of(limit.calls_per_minute, limit.max_concurrent);
            Some((name.parse().ok()?, limit))
        })
        .collect();
    LimitPlan {
        all: limit_of(
            value(&limits.calls_per_minute),
            value(&limits.max_concurrent),
        ),
        principals: Policies {
            default: gateway
                .principals
                .get(OTHERS)
                .map(policy)
                .unwrap_or_default(),
            named,
        },
        servers,
        other_servers: ServerLimit::default(),
    }
}

/// What limits a principal; which servers and tools are theirs is decided where those are known.
fn policy(settings: &PrincipalSettings) -> PrincipalPolicy {
    PrincipalPolicy {
        calls_per_minute: number(settings.calls_per_minute),
        max_concurrent: number(settings.max_concurrent),
        ..PrincipalPolicy::default()
    }
}

fn limit_of(calls_per_minute: Option<u64>, max_concurrent: Option<u64>) -> ServerLimit {
    ServerLimit {
        calls_per_minute: number(calls_per_minute),
        max_concurrent: number(max_concurrent),
    }
}

fn number(wanted: Option<u64>) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(wanted?).unwrap_or(u32::MAX))
}
