//! One call of a tool: its arguments, and what it can do to the client while it runs.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam,
};
use rmcp::service::{RequestContext, ServiceError};
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use crate::dialog::{Dialog, Memory};
use crate::era::is_modern;
use crate::shared::Shared;

/// What the suites want between two notifications.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct Call {
    pub(crate) params: CallToolRequestParams,
    pub(crate) context: RequestContext<RoleServer>,
    pub(crate) shared: Arc<Shared>,
    /// What the session asked for; modern clients say it with each request.
    pub(crate) session_level: LoggingLevel,
}

impl Call {
    pub(crate) fn argument(&self, name: &str) -> Option<&Value> {
        self.params.arguments.as_ref()?.get(name)
    }

    pub(crate) fn text_argument(&self, name: &str) -> Option<&str> {
        self.argument(name)?.as_str()
    }

    pub(crate) fn required(&self, name: &str) -> Result<&str, ErrorData> {
        self.text_argument(name).ok_or_else(|| {
            ErrorData::invalid_params(format!("the argument `{name}` is missing"), None)
        })
    }

    /// A dialog with what the client answered already.
    pub(crate) fn dialog(&self, memory: Memory) -> Result<Dialog<'_>, ErrorData> {
        Dialog::new(&self.context, &self.shared, &self.params.name, memory).resumed(
            self.params.input_responses.clone(),
            self.params.request_state.as_deref(),
        )
    }

    pub(crate) fn can_have_tasks(&self) -> bool {
        self.context
            .client_capabilities()
            .is_some_and(|capabilities| capabilities.supports_tasks())
    }

    /// Logs, if the client wants messages of this level.
    pub(crate) async fn log(&self, level: LoggingLevel, text: &str) -> Result<(), ErrorData> {
        let wanted = if is_modern(&self.context) {
            self.context.meta.log_level()
        } else {
            Some(self.session_level)
        };
        if wanted.is_none_or(|wanted| severity(level) < severity(wanted)) {
            return Ok(());
        }
        let message = LoggingMessageNotificationParam::new(level, text.into());
        let logged = self.context.peer.notify_logging_message(message).await;
        logged.map_err(|error| not_notified(&error))
    }

    /// Reports progress, if the client wants any.
    pub(crate) async fn progress(&self, done: f64, total: f64) -> Result<(), ErrorData> {
        let Some(token) = self.context.meta.get_progress_token() else {
            return Ok(());
        };
        let report = ProgressNotificationParam::new(token, done).with_total(total);
        let reported = self.context.peer.notify_progress(report).await;
        reported.map_err(|error| not_notified(&error))
    }
}

/// A result of one text.
pub(crate) fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn not_notified(error: &ServiceError) -> ErrorData {
    ErrorData::internal_error(format!("the client was not notified: {error}"), None)
}

fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
