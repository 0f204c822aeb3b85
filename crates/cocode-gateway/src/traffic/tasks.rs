//! Whose the tasks of a shared server are, so that what is told about them is told to nobody else.

use std::collections::VecDeque;

use cocode_wire::RawJson;
use cocode_wire::members::Members;
use serde::Deserialize;

/// What notifications about tasks begin with, in either era.
pub(super) const NOTIFICATIONS: &str = "notifications/tasks";
/// Tasks of one server that are remembered.
const MAX_TASKS: usize = 1024;

/// The tasks that sessions have begun at one server, oldest first.
#[derive(Default)]
pub(super) struct Tasks(VecDeque<(String, u64)>);

impl Tasks {
    /// Notes whose a task is that a request was answered with, if it was.
    pub(super) fn begun(&mut self, result: &RawJson, session: u64) {
        let members = result.decode::<Members<'_>>().unwrap_or_default();
        let task = members.get("task").and_then(Members::of);
        let id = task.and_then(|task| task.get("taskId"));
        let Some(id) = id.and_then(|id| serde_json::from_str(id.get()).ok()) else {
            return;
        };
        if self.0.len() >= MAX_TASKS {
            self.0.pop_front();
        }
        self.0.push_back((id, session));
    }

    /// Whose the task is that a notification is about.
    pub(super) fn session_of(&self, params: Option<&RawJson>) -> Option<u64> {
        #[derive(Deserialize)]
        struct Params {
            #[serde(rename = "taskId")]
            task: String,
        }
        let Params { task } = params?.decode().ok()?;
        let found = self.0.iter().rfind(|(id, _)| *id == task);
        found.map(|(_, session)| *session)
    }
}
