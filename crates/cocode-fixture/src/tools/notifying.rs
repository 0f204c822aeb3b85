//! Tools that notify while they run.

use std::time::Duration;

use rmcp::model::{CallToolResponse, LoggingLevel};
use tokio::time::sleep;

use super::Outcome;
use crate::call::{Call, PAUSE, text};
use crate::changes::Change;
use crate::resources::WATCHED;

/// Long enough for a client to come back by itself.
const SLOW: Duration = Duration::from_millis(300);

pub(super) async fn three_messages(call: &Call) -> Outcome {
    call.log(LoggingLevel::Info, "Tool execution started")
        .await?;
    sleep(PAUSE).await;
    call.log(LoggingLevel::Info, "Tool processing data").await?;
    sleep(PAUSE).await;
    call.log(LoggingLevel::Info, "Tool execution completed")
        .await?;
    Ok(text("Tool with logging executed").into())
}

pub(super) async fn one_message(call: &Call) -> Outcome {
    call.log(LoggingLevel::Info, "The logging tool runs")
        .await?;
    Ok(text("The logging tool has run").into())
}

pub(super) async fn progress(call: &Call) -> Outcome {
    call.progress(0.0, 100.0).await?;
    sleep(PAUSE).await;
    call.progress(50.0, 100.0).await?;
    sleep(PAUSE).await;
    call.progress(100.0, 100.0).await?;
    Ok(text("Tool with progress executed").into())
}

/// Answers after its event stream is closed, which the sessions do.
pub(super) async fn slow_answer() -> Outcome {
    sleep(SLOW).await;
    Ok(text("Reconnection test completed").into())
}

pub(super) fn announce(call: &Call, change: Change) -> CallToolResponse {
    // Nobody may be listening.
    call.shared.changes.send(change).ok();
    text("Announced").into()
}

pub(super) fn announce_update(call: &Call) -> CallToolResponse {
    let uri = call.text_argument("uri").unwrap_or(WATCHED).to_owned();
    announce(call, Change::Resource(uri))
}
