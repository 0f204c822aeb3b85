//! Who hears what a server says by ways that do not say for whom: nothing of one principal reaches
//! another.

use std::sync::{Arc, Weak};

use cocode_client::{Notification, Witness as _};
use cocode_wire::RawJson;
use tokio::time::Instant;

use super::calls::About;
use super::tasks::{self, Kept, Over, TaskOwner};
use super::{Listener, Traffic};

/// For whom a server has worked. What it says by itself may be about any of them, also long after they
/// were answered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Users {
    /// For nobody yet.
    #[default]
    Nobody,
    /// For one principal, or for whoever needs not say who they are.
    One(Option<Arc<str>>),
    /// For more than one.
    Several,
}

impl Users {
    /// It works for somebody.
    pub(super) fn add(&mut self, principal: Option<&str>) {
        match self {
            Self::Nobody => *self = Self::One(principal.map(Arc::from)),
            Self::One(known) if known.as_deref() != principal => *self = Self::Several,
            Self::One(_) | Self::Several => {}
        }
    }
}

impl Traffic {
    /// Passes on what the server says, to those whom it concerns.
    pub(super) fn pass_on(&self, notification: &Notification) {
        match notification.method.as_str() {
            // What is said about a request of ours is nobody else's business.
            "notifications/progress"
            | "notifications/cancelled"
            | "notifications/subscriptions/acknowledged" => {}
            // Only those hear of a resource who follow it, and all may know that lists have changed.
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/resources/updated" => self.tell(notification, |_| true),
            _ if notification.is_heard => {}
            "notifications/message" => self.log_message(notification),
            "notifications/elicitation/complete" => {
                let params = notification.params.as_ref();
                let is_asked = |one: &dyn Listener| {
                    let party = one.party();
                    party.is_some_and(|party| party.knows_of(params))
                };
                if self.is_for_one() {
                    self.tell_users(notification);
                } else {
                    self.tell(notification, is_asked);
                }
            }
            method if method.starts_with(tasks::NOTIFICATIONS) => self.task_changed(notification),
            _ => self.tell_users(notification),
        }
    }

    /// A log message that came by a way that does not say for whom.
    fn log_message(&self, notification: &Notification) {
        let meant = self.lock().calls.meant();
        match meant {
            About::Nothing => self.tell_users(notification),
            // The one that it works for may still not be the one that it talks about.
            About::One(_, witness) if self.is_for_one() => witness.notified(notification),
            // What was logged for one client is not for another; all of it is in the server's log.
            About::One(..) | About::Any(_) | About::GivenUp => {}
        }
    }

    /// Something is told about a task, which is for nobody but whose it is.
    fn task_changed(&self, notification: &Notification) {
        let params = notification.params.as_ref();
        let over = params.and_then(|said| self.lock().tasks.said(params, said));
        self.task_over(&notification.method, params, over);
        if self.owner.is_some() {
            return self.tell(notification, |_| true);
        }
        let (session, meant) = {
            let state = self.lock();
            (state.tasks.session_of(params), state.calls.meant())
        };
        match (session, meant) {
            (Some(session), _) => {
                self.tell(notification, |one| one.session() == Some(session));
            }
            // It has begun just now, and the answer that says so is on its way.
            (None, About::One(_, witness)) if self.is_for_one() => witness.notified(notification),
            (None, _) => {}
        }
    }

    /// Notes whose a task is that a request was answered with, if it was. `kept` is kept for it as long
    /// as it goes on.
    pub(crate) fn task_begun(
        &self,
        result: &RawJson,
        owner: TaskOwner,
        kept: impl FnOnce() -> Kept,
    ) {
        let forgotten = self.lock().tasks.begun(result, owner, kept);
        drop(forgotten);
    }

    /// Notes what a server has answered to a question about the task that these parameters name.
    pub(crate) fn task_answered(&self, method: &str, params: Option<&RawJson>, said: &RawJson) {
        let mut state = self.lock();
        // There is no result before it is over, and who cancels it does not want it any more.
        let is_last = matches!(method, "tasks/result" | "tasks/cancel");
        let counted = is_last.then(|| state.tasks.over(params)).flatten();
        let mut over = state.tasks.said(params, said);
        if method == "tasks/result" {
            state.tasks.set_ending(params, None);
        }
        drop(state);
        drop(counted);
        if is_last && let Some(over) = &mut over {
            // It is told already: these are watched themselves.
            over.told = None;
        }
        self.task_over(method, params, over);
    }

    /// Tells that a task is over, if somebody is to be told. `method` is what has said so.
    fn task_over(&self, method: &str, params: Option<&RawJson>, over: Option<Over>) {
        let Some(Over {
            counted,
            told,
            id,
            tool,
        }) = over
        else {
            return;
        };
        drop(counted);
        let Some((ending, fate)) = told else {
            return;
        };
        let tool = tool.as_deref().unwrap_or(&id);
        if let Err(ending) = ending.tell(method, &id, tool, fate) {
            self.lock().tasks.set_ending(params, Some(ending));
        }
    }

    /// The tool that works on the task that these parameters name, if it works for this principal.
    pub(crate) fn tool_of_task(
        &self,
        params: Option<&RawJson>,
        principal: Option<&str>,
    ) -> Option<Arc<str>> {
        self.lock().tasks.tool_of(params, principal)
    }

    /// Lets tasks that nobody has heard of for long count no longer.
    pub(crate) fn sweep(&self) {
        let late = self.lock().tasks.too_old(Instant::now());
        drop(late);
    }

    /// Whether somebody may ask about the task that these parameters name. Where clients share a
    /// server, only those for whom it works.
    pub(crate) fn may_ask_about_task(
        &self,
        params: Option<&RawJson>,
        principal: Option<&str>,
    ) -> bool {
        self.owner.is_some() || self.lock().tasks.is_of(params, principal)
    }

    /// Whether there is only one whom anything that the server says can be about.
    fn is_for_one(&self) -> bool {
        self.owner.is_some() || self.lock().users != Users::Several
    }

    /// Tells something that may be about any of those for whom the server works: they hear it if they
    /// are one. A server that has worked for nobody is heard if all who listen are one.
    fn tell_users(&self, notification: &Notification) {
        if self.owner.is_some() {
            return self.tell(notification, |_| true);
        }
        let principal = |one: &dyn Listener| {
            let party = one.party();
            party.map(|party| party.shared_principal())
        };
        let user = match &self.lock().users {
            Users::Nobody => None,
            Users::One(user) => Some(user.clone()),
            Users::Several => return,
        };
        let user = if let Some(user) = user {
            user
        } else {
            let listeners = self.listeners();
            let mut all = listeners.iter().filter_map(|one| principal(&**one));
            let Some(first) = all.next() else {
                return;
            };
            if all.any(|other| other != first) {
                return;
            }
            first
        };
        self.tell(notification, |one| principal(one).as_ref() == Some(&user));
    }

    fn tell(&self, notification: &Notification, whom: impl Fn(&dyn Listener) -> bool) {
        for listener in self.listeners() {
            if whom(&*listener) {
                listener.told(&self.name, notification);
            }
        }
    }

    pub(super) fn listeners(&self) -> Vec<Arc<dyn Listener>> {
        let state = self.lock();
        state.listeners.values().filter_map(Weak::upgrade).collect()
    }
}
