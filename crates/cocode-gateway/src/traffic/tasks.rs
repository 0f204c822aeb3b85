//! Whose the tasks of a shared server are, so that nobody else hears of them or asks about them.

use std::collections::VecDeque;
use std::sync::Arc;

use cocode_wire::RawJson;
use cocode_wire::members::{Members, never_mentions};
use serde::Deserialize;

/// What notifications about tasks begin with, in either era.
pub(super) const NOTIFICATIONS: &str = "notifications/tasks";
/// Tasks of one server that are remembered.
const MAX_TASKS: usize = 1024;
/// Those of them that are of one principal: nobody makes the tasks of others forgotten.
const MAX_TASKS_OF_ONE: usize = 256;

/// The tasks that were begun at one server, oldest first.
#[derive(Default)]
pub(super) struct Tasks(VecDeque<(String, TaskOwner)>);

/// Whose a task is.
#[derive(Clone, Debug)]
pub(crate) struct TaskOwner {
    /// The session that it was begun in, if there is one that hears of it.
    pub(crate) session: Option<u64>,
    /// For whom.
    pub(crate) principal: Option<Arc<str>>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(rename = "taskId")]
    task: String,
}

impl Tasks {
    /// Notes whose a task is that a request was answered with, if it was: as its own member in the
    /// older era, as the result itself in the other.
    pub(super) fn begun(&mut self, result: &RawJson, owner: TaskOwner) {
        if never_mentions(result, "taskId") {
            return;
        }
        let members = result.decode::<Members<'_>>().unwrap_or_default();
        let task = members.get("task").and_then(Members::of);
        let id = task.as_ref().unwrap_or(&members).get("taskId");
        let Some(id) = id.and_then(|id| serde_json::from_str(id.get()).ok()) else {
            return;
        };
        let is_theirs = |(_, other): &(String, TaskOwner)| other.principal == owner.principal;
        let theirs = self.0.iter().filter(|entry| is_theirs(entry)).count();
        if theirs >= MAX_TASKS_OF_ONE
            && let Some(oldest) = self.0.iter().position(is_theirs)
        {
            self.0.remove(oldest);
        }
        if self.0.len() >= MAX_TASKS {
            self.0.pop_front();
        }
        self.0.push_back((id, owner));
    }

    /// The session that hears of the task that a notification is about.
    pub(super) fn session_of(&self, params: Option<&RawJson>) -> Option<u64> {
        self.owner_of(params)?.session
    }

    /// Whether the task in some parameters may be asked about for a principal. One that nobody knows
    /// of is nobody's, which is not enough where there are several.
    pub(super) fn is_of(&self, params: Option<&RawJson>, principal: Option<&str>) -> bool {
        match self.owner_of(params) {
            Some(owner) => owner.principal.as_deref() == principal,
            None => principal.is_none(),
        }
    }

    fn owner_of(&self, params: Option<&RawJson>) -> Option<&TaskOwner> {
        let Named { task } = params?.decode().ok()?;
        let found = self.0.iter().rfind(|(id, _)| *id == task);
        found.map(|(_, owner)| owner)
    }
}

#[cfg(test)]
mod tests {
    use cocode_wire::RawJson;

    use super::{MAX_TASKS_OF_ONE, TaskOwner, Tasks};

    fn owner(session: u64, principal: Option<&str>) -> TaskOwner {
        TaskOwner {
            session: Some(session),
            principal: principal.map(Into::into),
        }
    }

    fn json(text: &str) -> RawJson {
        RawJson::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn a_task_is_of_whoever_began_it_in_either_era() {
        let mut tasks = Tasks::default();
        let legacy = json(r#"{"task":{"taskId":"1","status":"working"}}"#);
        tasks.begun(&legacy, owner(7, Some("ann")));
        let modern = json(r#"{"resultType":"task","taskId":"2"}"#);
        tasks.begun(&modern, owner(8, None));
        tasks.begun(&json(r#"{"content":[]}"#), owner(9, None));
        let params = |id: &str| json(&format!(r#"{{"taskId":"{id}"}}"#));
        let is_of = |id: &str, whose| tasks.is_of(Some(&params(id)), whose);
        assert!(is_of("1", Some("ann")) && !is_of("1", Some("bob")) && !is_of("1", None));
        assert!(is_of("2", None) && !is_of("2", Some("ann")));
        assert!(is_of("3", None) && !is_of("3", Some("ann")));
        assert!(!tasks.is_of(None, Some("ann")));
        assert_eq!(tasks.session_of(Some(&params("1"))), Some(7));
        assert_eq!(tasks.session_of(Some(&params("3"))), None);
    }

    #[test]
    fn nobody_makes_the_tasks_of_others_forgotten() {
        let mut tasks = Tasks::default();
        let begin = |tasks: &mut Tasks, id: &str, whose| {
            let result = json(&format!(r#"{{"taskId":"{id}"}}"#));
            tasks.begun(&result, owner(1, Some(whose)));
        };
        begin(&mut tasks, "first", "ann");
        for number in 0..5000 {
            begin(&mut tasks, &number.to_string(), "bob");
        }
        assert!(tasks.is_of(Some(&json(r#"{"taskId":"first"}"#)), Some("ann")));
        assert_eq!(tasks.0.len(), MAX_TASKS_OF_ONE + 1);
        assert!(tasks.is_of(Some(&json(r#"{"taskId":"4999"}"#)), Some("bob")));
        assert!(!tasks.is_of(Some(&json(r#"{"taskId":"4"}"#)), Some("bob")));
    }
}
