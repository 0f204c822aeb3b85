//! Tools that go on as tasks (the extension `io.modelcontextprotocol/tasks`) for clients that can
//! have them. For others they do their work within the call, but for those whose tests demand that
//! they refuse.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, CreateTaskResult,
    InputRequest,
};
use rmcp::task_manager::{TaskContext, TaskExit, TaskOptions};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Outcome;
use crate::call::{Call, text};
use crate::dialog::Memory;
use crate::era::is_modern;
use crate::questions::{filled_in, form};

const POLL_INTERVAL_MS: u64 = 100;

/// How long a job runs that fails.
const JOB: Duration = Duration::from_millis(200);

/// The longest that a call can be told to take.
const LONGEST: Duration = Duration::from_mins(5);

/// Starts a task.
fn start<F>(call: &Call, work: impl FnOnce(TaskContext) -> F) -> CallToolResponse
where
    F: Future<Output = Result<CallToolResult, TaskExit>> + Send + 'static,
{
    let options = TaskOptions::new().with_poll_interval_ms(POLL_INTERVAL_MS);
    let task = call
        .shared
        .tasks
        .spawn(options, |context| Box::pin(work(context)));
    CreateTaskResult::new(task).into()
}

/// What a tool says that cannot go on without a task. A legacy client knows nothing of them.
fn refuse_without_tasks(call: &Call) -> Result<(), ErrorData> {
    if is_modern(&call.context) && !call.can_have_tasks() {
        let needed = ClientCapabilities::builder().enable_tasks().build();
        return Err(ErrorData::missing_required_client_capability(needed));
    }
    Ok(())
}

pub(super) async fn slow(call: &Call) -> Outcome {
    let seconds = call.argument("seconds").and_then(Value::as_f64);
    let time = Duration::try_from_secs_f64(seconds.unwrap_or_default()).unwrap_or(LONGEST);
    let label = call.text_argument("label").unwrap_or("nothing").to_owned();
    if !call.can_have_tasks() {
        tokio::select! {
            () = sleep(time.min(LONGEST)) => return Ok(text(format!("Computed {label}")).into()),
            () = call.context.ct.cancelled() => {
                return Err(ErrorData::internal_error("cancelled", None).into());
            }
        }
    }
    Ok(start(call, |task| async move {
        tokio::select! {
            () = sleep(time.min(LONGEST)) => Ok(text(format!("Computed {label}"))),
            () = task.cancelled() => Err(TaskExit::Cancelled),
        }
    }))
}

pub(super) async fn failing(call: &Call) -> Outcome {
    async fn work() -> CallToolResult {
        sleep(JOB).await;
        CallToolResult::error(vec![ContentBlock::text("The job has failed")])
    }
    refuse_without_tasks(call)?;
    if !call.can_have_tasks() {
        return Ok(work().await.into());
    }
    Ok(start(call, |_task| async { Ok(work().await) }))
}

pub(super) async fn broken(call: &Call) -> Outcome {
    async fn work() -> ErrorData {
        sleep(JOB).await;
        ErrorData::internal_error("The job is broken", None)
    }
    if !call.can_have_tasks() {
        return Err(work().await.into());
    }
    Ok(start(call, |_task| async {
        Err(TaskExit::Error(work().await))
    }))
}

pub(super) async fn confirmed(call: &Call) -> Outcome {
    let file = call
        .text_argument("filename")
        .unwrap_or("the file")
        .to_owned();
    let question = form(
        &format!("Delete {file}?"),
        &json!({ "confirm": { "type": "boolean" } }),
    );
    let say = move |answer: &Value| {
        if answer["content"]["confirm"] == true {
            text(format!("Deleted {file}"))
        } else {
            text(format!("Kept {file}"))
        }
    };
    if !call.can_have_tasks() {
        let mut dialog = call.dialog(Memory::None)?;
        let answers = dialog.ask([("confirm", question)]).await?;
        return Ok(say(&answers["confirm"]).into());
    }
    Ok(start(call, |task| async move {
        Ok(say(&task.request_input("confirm", question).await?))
    }))
}

fn name_question(message: &str) -> InputRequest {
    form(message, &json!({ "name": { "type": "string" } }))
}

pub(super) async fn two_questions(call: &Call) -> Outcome {
    let first = name_question("What is the first name?");
    let second = name_question("What is the second name?");
    let say = |first: &Value, second: &Value| {
        let (first, second) = (filled_in(first, "name"), filled_in(second, "name"));
        text(format!("{first} and {second}"))
    };
    if !call.can_have_tasks() {
        let mut dialog = call.dialog(Memory::None)?;
        let answers = dialog.ask([("first", first), ("second", second)]).await?;
        return Ok(say(&answers["first"], &answers["second"]).into());
    }
    Ok(start(call, |task| async move {
        let (first, second) = tokio::join!(
            task.request_input("first", first),
            task.request_input("second", second),
        );
        Ok(say(&first?, &second?))
    }))
}

pub(super) async fn asked_before(call: &Call) -> Outcome {
    refuse_without_tasks(call)?;
    let question = name_question("What is your name?");
    let mut dialog = call.dialog(Memory::Sealed)?;
    let answers = dialog.ask([("user_name", question)]).await?;
    let name = filled_in(&answers["user_name"], "name").to_owned();
    let say = move || text(format!("The task is done for {name}"));
    if !call.can_have_tasks() {
        return Ok(say().into());
    }
    Ok(start(call, |_task| async move { Ok(say()) }))
}
