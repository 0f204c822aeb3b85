//! Who hears what servers tell on their own account, and when the lists have changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cocode_client::{ListKind, Notification, RawJson};
use cocode_core::ServerName;
use cocode_wire::{RpcError, code};

use super::pages::{Pages, with_text};
use super::retelling;
use super::snapshot::Lists;
use crate::downstream::{Downstream, updated_uri};
use crate::instance::Instance;
use crate::level::Level;
use crate::notices::{Subscription, for_session};
use crate::traffic::{Listener, Listening};

/// Resources that one client may follow.
const MAX_FOLLOWED: usize = 1024;

/// All who listen, by a number that nobody else has.
#[derive(Default)]
pub(crate) struct Audience(Mutex<BTreeMap<u64, Arc<Member>>>);

/// Somebody who listens.
pub(crate) struct Member {
    who: Who,
    state: Mutex<State>,
}

enum Who {
    /// A client with a session.
    Session(Weak<Downstream>),
    /// A request of the stateless era that stays open.
    Subscription(Arc<Subscription>),
}

struct State {
    /// The lists as they were given to it, or when it came.
    seen: Lists,
    listening: BTreeMap<ServerName, (Weak<Instance>, Listening)>,
    /// What it wants to hear the changes of, by the URIs that it knows.
    followed: BTreeMap<String, Followed>,
}

/// A resource that is followed until this is dropped.
pub(crate) struct Followed {
    instance: Weak<Instance>,
    server: ServerName,
    /// What its server knows it by.
    uri: String,
}

impl Audience {
    /// Somebody comes, who has seen nothing later than these lists.
    pub(crate) fn join_session(&self, client: &Arc<Downstream>, seen: Lists) -> Arc<Member> {
        self.prune();
        let who = Who::Session(Arc::downgrade(client));
        self.join(client.number(), who, seen)
    }

    /// As [`Self::join_session`], for a subscription of the stateless era.
    pub(crate) fn join_subscription(
        &self,
        number: u64,
        subscription: Arc<Subscription>,
        seen: Lists,
    ) -> Arc<Member> {
        self.join(number, Who::Subscription(subscription), seen)
    }

    fn join(&self, number: u64, who: Who, seen: Lists) -> Arc<Member> {
        let state = State {
            seen,
            listening: BTreeMap::new(),
            followed: BTreeMap::new(),
        };
        let member = Arc::new(Member {
            who,
            state: Mutex::new(state),
        });
        let older = self.lock().insert(number, Arc::clone(&member));
        drop(older);
        member
    }

    /// The member of this number.
    pub(crate) fn find(&self, number: u64) -> Option<Arc<Member>> {
        self.lock().get(&number).cloned()
    }

    pub(crate) fn leave(&self, number: u64) {
        let gone = self.lock().remove(&number);
        drop(gone);
    }

    /// Lets those go whose clients have left.
    pub(crate) fn prune(&self) {
        let gone: Vec<_> = {
            let mut all = self.lock();
            all.extract_if(.., |_, member| member.has_left()).collect()
        };
        // Outside of the lock: what they followed is given up.
        drop(gone);
    }

    pub(crate) fn all(&self) -> Vec<Arc<Member>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Member>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    fn has_left(&self) -> bool {
        match &self.who {
            Who::Session(client) => client.upgrade().is_none_or(|client| client.has_ended()),
            Who::Subscription(_) => false,
        }
    }

    /// The instance of a server that serves this one alone, if there is one.
    pub(crate) fn own(&self, server: &ServerName) -> Option<Arc<Instance>> {
        match &self.who {
            Who::Session(client) => client.upgrade()?.own(server),
            Who::Subscription(_) => None,
        }
    }

    /// Gives the list of this moment, and remembers that this is what it has.
    pub(crate) fn look(&self, kind: ListKind, now: impl FnOnce() -> Arc<Pages>) -> Arc<Pages> {
        let mut state = self.lock();
        let pages = now();
        state.seen.set(kind, Arc::clone(&pages));
        pages
    }

    /// Tells which lists are others than the ones it has, if any are.
    pub(crate) fn update(&self, now: impl FnOnce() -> Lists) {
        let changed = {
            let mut state = self.lock();
            let now = now();
            let changed = now.changed_since(&state.seen);
            state.seen = now;
            changed
        };
        let mut methods: Vec<&str> = changed.into_iter().map(changed_method).collect();
        methods.dedup();
        for method in methods {
            self.tell(method, None);
        }
    }

    /// Makes sure that it hears this server, and no other in its place. Gives what it followed on
    /// that other one.
    pub(crate) fn attend(self: &Arc<Self>, instance: &Arc<Instance>) -> Vec<(String, String)> {
        let name = instance.name();
        let this = Arc::downgrade(instance);
        let mut state = self.lock();
        let known = state.listening.get(name);
        if known.is_some_and(|(known, _)| known.ptr_eq(&this)) {
            return Vec::new();
        }
        let listener: Weak<Self> = Arc::downgrade(self);
        let listening = instance.traffic.listen(listener as Weak<dyn Listener>);
        let older = state
            .listening
            .insert(name.clone(), (this.clone(), listening));
        let elsewhere = state.followed.iter();
        let elsewhere = elsewhere
            .filter(|(_, followed)| followed.server == *name && !followed.instance.ptr_eq(&this));
        let elsewhere = elsewhere.map(|(asked, followed)| (asked.clone(), followed.uri.clone()));
        let elsewhere = elsewhere.collect();
        drop(state);
        drop(older);
        elsewhere
    }

    /// No server but these is heard.
    pub(crate) fn attend_only(&self, is_served: impl Fn(&ServerName) -> bool) {
        let gone: Vec<_> = {
            let mut state = self.lock();
            let listening = &mut state.listening;
            listening
                .extract_if(.., |name, _| !is_served(name))
                .collect()
        };
        drop(gone);
    }

    /// Lets it hear of the changes of a resource, which it knows as `asked`.
    pub(crate) async fn follow(
        &self,
        asked: &str,
        instance: &Arc<Instance>,
        uri: &str,
    ) -> Result<(), RpcError> {
        let is_full = {
            let followed = &self.lock().followed;
            followed.len() >= MAX_FOLLOWED && !followed.contains_key(asked)
        };
        if is_full {
            let what = format!("at most {MAX_FOLLOWED} resources can be followed");
            return Err(RpcError::new(code::INVALID_PARAMS, what));
        }
        let followed = Followed::begin(instance, uri).await?;
        self.add(asked, followed);
        Ok(())
    }

    /// Lets it hear of the changes of a resource that is followed already.
    pub(crate) fn add(&self, asked: &str, followed: Followed) {
        let older = self.lock().followed.insert(asked.to_owned(), followed);
        // Outside of the lock: it is given up.
        drop(older);
    }

    /// The changes of a resource are of no interest any more.
    pub(crate) fn unfollow(&self, asked: &str) {
        let gone = self.lock().followed.remove(asked);
        drop(gone);
    }

    fn tell(&self, method: &str, params: Option<&RawJson>) {
        match &self.who {
            Who::Session(client) => {
                if let Some(client) = client.upgrade() {
                    client.tell(method, params);
                }
            }
            Who::Subscription(subscription) => subscription.tell(method, params),
        }
    }

    /// By what names it knows a resource that has changed.
    fn asked(&self, server: &ServerName, uri: &str) -> Vec<String> {
        let state = self.lock();
        let asked = state.followed.iter();
        let asked = asked.filter(|(_, followed)| followed.server == *server && followed.uri == uri);
        asked.map(|(asked, _)| asked.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Member {
    fn told(&self, server: &ServerName, notification: &Notification) {
        let Notification { method, params, .. } = notification;
        let params = params.as_ref();
        match (method.as_str(), &self.who) {
            ("notifications/resources/updated", _) => {
                let params = for_session(params);
                let uri = updated_uri(params.as_ref()).unwrap_or_default();
                for asked in self.asked(server, &uri) {
                    let known = params
                        .as_ref()
                        .and_then(|params| with_text(params, "uri", &asked));
                    self.tell(method, known.as_ref());
                }
            }
            // The lists of all together are told of when they have changed; and subscriptions are to
            // nothing else.
            (
                "notifications/tools/list_changed"
                | "notifications/prompts/list_changed"
                | "notifications/resources/list_changed",
                Who::Session(_),
            )
            | (_, Who::Subscription(_)) => {}
            ("notifications/message", Who::Session(client)) => {
                let Some(client) = client.upgrade() else {
                    return;
                };
                if Level::of_message(params) >= client.log_level() {
                    let params = for_session(params);
                    let retold = retelling::message(server, params.as_ref());
                    client.tell(method, retold.as_ref().or(params.as_ref()));
                }
            }
            (_, Who::Session(_)) => self.tell(method, for_session(params).as_ref()),
        }
    }
}

impl Followed {
    pub(crate) async fn begin(instance: &Arc<Instance>, uri: &str) -> Result<Self, RpcError> {
        instance.follow(uri).await?;
        Ok(Self {
            instance: Arc::downgrade(instance),
            server: instance.name().clone(),
            uri: uri.to_owned(),
        })
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        if let Some(instance) = self.instance.upgrade() {
            instance.unfollow(&self.uri);
        }
    }
}

fn changed_method(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tools => "notifications/tools/list_changed",
        ListKind::Prompts => "notifications/prompts/list_changed",
        ListKind::Resources | ListKind::ResourceTemplates => "notifications/resources/list_changed",
    }
}

impl std::fmt::Debug for Audience {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("Audience")
            .field(&self.lock().len())
            .finish()
    }
}
