//! Whose the tasks of a shared server are, so that nobody else hears of them or asks about them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use cocode_wire::RawJson;
use cocode_wire::members::{Members, never_mentions};
use serde::Deserialize;
use tokio::time::Instant;

use crate::ending::{Ending, Fate};
use crate::oversight::Counted;

/// What notifications about tasks begin with, in either era.
pub(super) const NOTIFICATIONS: &str = "notifications/tasks";
/// Tasks of one server that are remembered.
const MAX_TASKS: usize = 1024;
/// Those of them that are of one principal: nobody makes the tasks of others forgotten.
const MAX_TASKS_OF_ONE: usize = 256;

/// How long a task counts among what goes on, if its server does not say for how long it keeps it.
const COUNTS_FOR: Duration = Duration::from_hours(1);
/// The same, whatever its server says.
const COUNTS_AT_MOST_FOR: Duration = Duration::from_hours(6);

/// The tasks that were begun at one server, oldest first.
#[derive(Default)]
pub(super) struct Tasks(VecDeque<Task>);

struct Task {
    id: String,
    owner: TaskOwner,
    /// The tool that works on it.
    tool: Option<Arc<str>>,
    /// What counts it among what goes on, and until when at most.
    counted: Option<(Counted, Instant)>,
    /// Who is to be told how it ends, and was not told yet.
    ending: Option<Ending>,
}

/// What is kept for a task as long as it goes on.
#[derive(Default)]
pub(crate) struct Kept {
    /// The tool that works on it.
    pub(crate) tool: Option<Arc<str>>,
    /// Counts it among what goes on.
    pub(crate) counted: Option<Counted>,
    /// Who is to be told how it ends.
    pub(crate) ending: Option<Ending>,
}

/// A task that has come to its end, for the first time that this is heard of.
#[derive(Default)]
pub(super) struct Over {
    /// To be dropped where nothing is locked.
    pub(super) counted: Option<Counted>,
    /// To be told so.
    pub(super) told: Option<(Ending, Fate)>,
    pub(super) id: String,
    pub(super) tool: Option<Arc<str>>,
}

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
    /// older era, as the result itself in the other. `kept` is what is kept for it. Gives what is to be
    /// dropped where nothing is locked.
    #[must_use]
    pub(super) fn begun(
        &mut self,
        result: &RawJson,
        owner: TaskOwner,
        kept: impl FnOnce() -> Kept,
    ) -> Vec<Counted> {
        if never_mentions(result, "taskId") {
            return Vec::new();
        }
        let members = result.decode::<Members<'_>>().unwrap_or_default();
        let task = members.get("task").and_then(Members::of);
        let task = task.as_ref().unwrap_or(&members);
        let id = task.get("taskId");
        let Some(id) = id.and_then(|id| serde_json::from_str(id.get()).ok()) else {
            return Vec::new();
        };
        let Kept {
            tool,
            counted,
            ending,
        } = kept();
        let mut dropped = Vec::new();
        let counted = if Fate::of(result, task).is_some() {
            dropped.extend(counted);
            None
        } else {
            counted.map(|counted| (counted, Instant::now() + counts_for(task)))
        };
        let is_theirs = |other: &Task| other.owner.principal == owner.principal;
        let theirs = self.0.iter().filter(|task| is_theirs(task)).count();
        let mut forgotten = Vec::new();
        if theirs >= MAX_TASKS_OF_ONE
            && let Some(oldest) = self.0.iter().position(is_theirs)
        {
            forgotten.extend(self.0.remove(oldest));
        }
        if self.0.len() >= MAX_TASKS {
            forgotten.extend(self.0.pop_front());
        }
        self.0.push_back(Task {
            id,
            owner,
            tool,
            counted,
            ending,
        });
        let forgotten = forgotten.into_iter();
        dropped.extend(forgotten.filter_map(|task| Some(task.counted?.0)));
        dropped
    }

    /// What is said about a task, by its server or in answer to a question about it: what is to be done
    /// if it is over.
    #[must_use]
    pub(super) fn said(&mut self, params: Option<&RawJson>, said: &RawJson) -> Option<Over> {
        let members = said.decode::<Members<'_>>().ok()?;
        let task = members.get("task").and_then(Members::of);
        let fate = Fate::of(said, task.as_ref().unwrap_or(&members))?;
        let found = self.find(params)?;
        Some(Over {
            counted: found.counted.take().map(|(counted, _)| counted),
            told: found.ending.take().map(|ending| (ending, fate)),
            id: found.id.clone(),
            tool: found.tool.clone(),
        })
    }

    /// A task does not count any more, whatever is said about it.
    #[must_use]
    pub(super) fn over(&mut self, params: Option<&RawJson>) -> Option<Counted> {
        let counted = self.find(params)?.counted.take();
        counted.map(|(counted, _)| counted)
    }

    /// Somebody else tells how a task ended, or is to be told the next time.
    pub(super) fn set_ending(&mut self, params: Option<&RawJson>, ending: Option<Ending>) {
        if let Some(found) = self.find(params) {
            found.ending = ending;
        }
    }

    /// The tool that works on the task in some parameters, if the task is of this principal.
    pub(super) fn tool_of(
        &self,
        params: Option<&RawJson>,
        principal: Option<&str>,
    ) -> Option<Arc<str>> {
        let found = self.known(params)?;
        let is_theirs = found.owner.principal.as_deref() == principal;
        found.tool.clone().filter(|_| is_theirs)
    }

    /// Tasks that were heard of too long ago to count.
    #[must_use]
    pub(super) fn too_old(&mut self, now: Instant) -> Vec<Counted> {
        let is_late = |(_, until): &mut (Counted, Instant)| *until <= now;
        let late = self.0.iter_mut();
        let late = late.filter_map(|task| task.counted.take_if(is_late));
        late.map(|(counted, _)| counted).collect()
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
        self.known(params).map(|task| &task.owner)
    }

    fn known(&self, params: Option<&RawJson>) -> Option<&Task> {
        let Named { task: id } = params?.decode().ok()?;
        self.0.iter().rfind(|task| task.id == id)
    }

    fn find(&mut self, params: Option<&RawJson>) -> Option<&mut Task> {
        let Named { task: id } = params?.decode().ok()?;
        self.0.iter_mut().rfind(|task| task.id == id)
    }
}

/// For how long a task may count, by what is said about how long it is kept.
fn counts_for(task: &Members<'_>) -> Duration {
    let said = task.get("ttl").or_else(|| task.get("ttlMs"));
    let said = said.and_then(|said| serde_json::from_str(said.get()).ok());
    said.map_or(COUNTS_FOR, Duration::from_millis)
        .min(COUNTS_AT_MOST_FOR)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use cocode_wire::RawJson;
    use tokio::time::Instant;

    use super::{Kept, MAX_TASKS_OF_ONE, TaskOwner, Tasks};
    use crate::oversight::Counted;

    fn owner(session: u64, principal: Option<&str>) -> TaskOwner {
        TaskOwner {
            session: Some(session),
            principal: principal.map(Into::into),
        }
    }

    fn json(text: &str) -> RawJson {
        RawJson::parse(text.to_owned()).unwrap()
    }

    fn begin(tasks: &mut Tasks, result: &RawJson, owner: TaskOwner) {
        assert!(tasks.begun(result, owner, Kept::default).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_counts_until_it_is_over_forgotten_or_too_old() {
        let going_on = Arc::new(());
        let n_counted = || Arc::strong_count(&going_on) - 1;
        let counted = || Kept {
            counted: Some(Box::new(Arc::clone(&going_on)) as Counted),
            ..Kept::default()
        };
        let mut tasks = Tasks::default();
        let begun = |tasks: &mut Tasks, text: &str| {
            drop(tasks.begun(&json(text), owner(1, Some("ann")), counted));
        };
        begun(
            &mut tasks,
            r#"{"task":{"taskId":"1","status":"working","ttl":60000}}"#,
        );
        begun(
            &mut tasks,
            r#"{"taskId":"2","status":"input_required","ttlMs":null}"#,
        );
        begun(&mut tasks, r#"{"taskId":"3","status":"completed"}"#);
        begun(&mut tasks, r#"{"content":[]}"#);
        assert_eq!(n_counted(), 2);
        let (one, two) = (json(r#"{"taskId":"1"}"#), json(r#"{"taskId":"2"}"#));
        drop(tasks.said(Some(&two), &json(r#"{"taskId":"2","status":"working"}"#)));
        assert_eq!(n_counted(), 2);
        drop(tasks.said(Some(&two), &json(r#"{"taskId":"2","status":"failed"}"#)));
        assert_eq!(n_counted(), 1);
        drop(tasks.too_old(Instant::now() + Duration::from_secs(59)));
        assert_eq!(n_counted(), 1);
        drop(tasks.too_old(Instant::now() + Duration::from_mins(1)));
        assert_eq!(n_counted(), 0);
        // They are known nevertheless.
        assert!(tasks.is_of(Some(&one), Some("ann")));
        for number in 0..2 * MAX_TASKS_OF_ONE {
            begun(&mut tasks, &format!(r#"{{"taskId":"more-{number}"}}"#));
        }
        assert_eq!(n_counted(), MAX_TASKS_OF_ONE);
    }

    #[test]
    fn a_task_is_of_whoever_began_it_in_either_era() {
        let mut tasks = Tasks::default();
        let legacy = json(r#"{"task":{"taskId":"1","status":"working"}}"#);
        begin(&mut tasks, &legacy, owner(7, Some("ann")));
        let modern = json(r#"{"resultType":"task","taskId":"2"}"#);
        begin(&mut tasks, &modern, owner(8, None));
        begin(&mut tasks, &json(r#"{"content":[]}"#), owner(9, None));
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
            begin(tasks, &result, owner(1, Some(whose)));
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
