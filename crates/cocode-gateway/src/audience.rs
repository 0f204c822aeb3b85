//! Who hears what servers tell on their own account: sessions, and subscriptions of the stateless
//! era. Whoever listens to a server listens to what takes its place, too, and follows there what it
//! followed before.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cocode_client::{ListKind, Notification, RawJson};
use cocode_core::ServerName;
use cocode_wire::{RpcError, code};

use crate::downstream::{Downstream, updated_uri};
use crate::following::{Followed, Interest};
use crate::instance::{Instance, told};
use crate::level::Level;
use crate::merged::{Lists, Pages, retelling, with_text};
use crate::notices::{Subscription, for_session};
use crate::party::Party;
use crate::searching::Choice;
use crate::traffic::{Listener, Listening};
use crate::view::Inner;

/// Resources that one client may follow.
const MAX_FOLLOWED: usize = 1024;

/// All who listen, by a number that nobody else has.
#[derive(Default)]
pub(crate) struct Audience(Mutex<BTreeMap<u64, Arc<Member>>>);

/// Somebody who listens.
pub(crate) struct Member {
    client: Weak<Downstream>,
    /// The request of the stateless era that stays open, if it is not a session that listens.
    subscription: Option<Arc<Subscription>>,
    hears: Hears,
    state: Mutex<State>,
}

/// What somebody listens to.
pub(crate) enum Hears {
    /// One server, which is told of as it tells.
    Server(ServerName),
    /// All servers as one.
    All(Mutex<Seen>),
}

/// What somebody has seen of all servers.
pub(crate) struct Seen {
    /// The lists as they were given to it, or when it came.
    lists: Lists,
    /// Whether it searches for tools.
    choice: Choice,
}

#[derive(Default)]
struct State {
    listening: BTreeMap<ServerName, (Weak<Instance>, Listening)>,
    /// What it wants to hear the changes of, by the URIs that it knows.
    wanted: BTreeMap<String, Wanted>,
}

/// A resource whose changes are of interest.
struct Wanted {
    server: ServerName,
    /// What its server knows it by.
    uri: String,
    _followed: Followed,
}

impl Hears {
    /// All servers, by somebody who knows these lists.
    pub(crate) fn all(lists: Lists, choice: Choice) -> Self {
        Self::All(Mutex::new(Seen { lists, choice }))
    }
}

impl Audience {
    /// A client with a session comes.
    pub(crate) fn join(&self, client: &Arc<Downstream>, hears: Hears) -> Arc<Member> {
        self.prune();
        self.add(client.number(), client, None, hears)
    }

    /// As [`Self::join`], for a request of the stateless era that stays open.
    pub(crate) fn join_subscription(
        &self,
        number: u64,
        client: &Arc<Downstream>,
        subscription: Arc<Subscription>,
        hears: Hears,
    ) -> Joined<'_> {
        Joined {
            member: self.add(number, client, Some(subscription), hears),
            audience: self,
            number,
        }
    }

    fn add(
        &self,
        number: u64,
        client: &Arc<Downstream>,
        subscription: Option<Arc<Subscription>>,
        hears: Hears,
    ) -> Arc<Member> {
        let member = Arc::new(Member {
            client: Arc::downgrade(client),
            subscription,
            hears,
            state: Mutex::default(),
        });
        let older = self.lock().insert(number, Arc::clone(&member));
        drop(older);
        member
    }

    /// The member of this number.
    pub(crate) fn find(&self, number: u64) -> Option<Arc<Member>> {
        self.lock().get(&number).cloned()
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

    /// Makes sure that everybody hears the servers that there are now; or one client does, if it is
    /// only about that one.
    pub(crate) fn attend(&self, view: &Inner, client: Option<&Arc<Downstream>>) {
        for member in self.all() {
            let is_meant = |client: &Arc<Downstream>| {
                std::ptr::eq(member.client.as_ptr(), Arc::as_ptr(client))
            };
            if client.is_none_or(is_meant) {
                member.attend(view);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Member>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscription that listens, until this is dropped.
pub(crate) struct Joined<'a> {
    pub(crate) member: Arc<Member>,
    audience: &'a Audience,
    number: u64,
}

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        let gone = self.audience.lock().remove(&self.number);
        drop(gone);
    }
}

impl Member {
    fn has_left(&self) -> bool {
        let client = self.client.upgrade();
        self.subscription.is_none() && client.is_none_or(|client| client.has_ended())
    }

    /// The client, if it listens as a session.
    fn as_session(&self) -> Option<Arc<Downstream>> {
        let client = self.client.upgrade();
        client.filter(|_| self.subscription.is_none())
    }

    /// Gives the list of this moment, and remembers that this is what it has.
    pub(crate) fn look(
        &self,
        kind: ListKind,
        now: impl FnOnce(&mut Choice) -> Arc<Pages>,
    ) -> Arc<Pages> {
        let Hears::All(seen) = &self.hears else {
            return now(&mut Choice::default());
        };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Seen { lists, choice } = &mut *seen;
        let pages = now(choice);
        lists.set(kind, Arc::clone(&pages));
        pages
    }

    /// Whether it was given the tools of somebody who searches.
    pub(crate) fn is_searching(&self) -> bool {
        let Hears::All(seen) = &self.hears else {
            return false;
        };
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.choice.is_search()
    }

    /// Tells which lists are others than the ones it has, if any are.
    pub(crate) fn update(&self, now: impl FnOnce(&mut Choice) -> Lists) {
        let Hears::All(seen) = &self.hears else {
            return;
        };
        let changed = {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let Seen { lists, choice } = &mut *seen;
            let now = now(choice);
            let changed = now.changed_since(lists);
            *lists = now;
            changed
        };
        self.tell_changed(&changed);
    }

    /// Tells that these lists are others now.
    pub(crate) fn tell_changed(&self, changed: &[ListKind]) {
        let mut methods: Vec<&str> = changed.iter().copied().map(changed_method).collect();
        methods.dedup();
        for method in methods {
            self.tell(method, None);
        }
    }

    /// Makes sure that it hears the servers that there are now, and no others in their place.
    pub(crate) fn attend(self: &Arc<Self>, view: &Inner) {
        let client = self.client.upgrade();
        let mut state = self.lock();
        // Within the lock, so that whoever comes last has looked last.
        let servers = view.servers();
        let is_heard = |name: &ServerName| match &self.hears {
            Hears::Server(only) => name == only && servers.contains_key(name),
            Hears::All(_) => servers.contains_key(name),
        };
        let State { listening, wanted } = &mut *state;
        let given_up = listening.extract_if(.., |name, _| !is_heard(name));
        let mut given_up: Vec<_> = given_up.map(|(_, older)| older).collect();
        let mut elsewhere = Vec::new();
        let mut new = Vec::new();
        for (name, entry) in servers.iter().filter(|(name, _)| is_heard(name)) {
            let decided = client.as_ref().and_then(|client| client.served_by(entry));
            let instance = decided.as_ref().unwrap_or(&entry.instance);
            let this = Arc::downgrade(instance);
            let known = listening.get(name);
            if known.is_some_and(|(known, _)| known.ptr_eq(&this)) {
                continue;
            }
            let listener: Weak<Self> = Arc::downgrade(self);
            let heard = instance.traffic.listen(listener as Weak<dyn Listener>);
            given_up.extend(listening.insert(name.clone(), (this, heard)));
            let others = wanted.iter().filter(|(_, wanted)| wanted.server == *name);
            elsewhere.extend(others.map(|(asked, wanted)| {
                let Wanted { server, uri, .. } = wanted;
                (asked.clone(), server.clone(), uri.clone())
            }));
            new.push(Arc::clone(instance));
        }
        drop(state);
        drop(given_up);
        if self.wanted_level().is_some() {
            for instance in new {
                instance.keep_level();
                view.background(async move { instance.ask_for_level().await });
            }
        }
        if !elsewhere.is_empty() {
            view.background(follow_again(Arc::clone(self), elsewhere));
        }
    }

    /// Lets it hear of the changes of a resource, which it knows as `asked`, and the server as `uri`.
    pub(crate) async fn follow(
        &self,
        asked: &str,
        server: &ServerName,
        uri: &str,
    ) -> Result<(), RpcError> {
        let is_full = {
            let wanted = &self.lock().wanted;
            wanted.len() >= MAX_FOLLOWED && !wanted.contains_key(asked)
        };
        if is_full {
            let what = format!("at most {MAX_FOLLOWED} resources can be followed");
            return Err(RpcError::new(code::INVALID_PARAMS, what));
        }
        self.follow_where_it_is(asked, server, uri, Interest::New)
            .await
    }

    /// Follows a resource at the server that is heard, even if that changes meanwhile.
    async fn follow_where_it_is(
        &self,
        asked: &str,
        server: &ServerName,
        uri: &str,
        interest: Interest,
    ) -> Result<(), RpcError> {
        loop {
            let Some(instance) = self.heard(server) else {
                let what = "the server is not served any more";
                return Err(RpcError::new(code::INTERNAL_ERROR, what));
            };
            let followed = instance.following.follow(uri, interest).await;
            let followed = followed.map_err(|error| told(server, &error))?;
            let mut state = self.lock();
            let now = state.listening.get(server);
            if now.is_some_and(|(now, _)| !now.ptr_eq(&Arc::downgrade(&instance))) {
                // Another one took its place.
                continue;
            }
            if interest == Interest::Old && !state.wanted.contains_key(asked) {
                // Nobody wants it any more.
                return Ok(());
            }
            let wanted = Wanted {
                server: server.clone(),
                uri: uri.to_owned(),
                _followed: followed,
            };
            let older = state.wanted.insert(asked.to_owned(), wanted);
            drop(state);
            // Outside of the lock: it is given up.
            drop(older);
            return Ok(());
        }
    }

    fn heard(&self, server: &ServerName) -> Option<Arc<Instance>> {
        self.lock().listening.get(server)?.0.upgrade()
    }

    /// The changes of a resource are of no interest any more.
    pub(crate) fn unfollow(&self, asked: &str) {
        let gone = self.lock().wanted.remove(asked);
        drop(gone);
    }

    fn tell(&self, method: &str, params: Option<&RawJson>) {
        if let Some(subscription) = &self.subscription {
            subscription.tell(method, params);
        } else if let Some(client) = self.client.upgrade() {
            client.tell(method, params);
        }
    }

    /// By what names it knows a resource that has changed.
    fn names_of(&self, server: &ServerName, uri: &str) -> Vec<String> {
        let state = self.lock();
        let wanted = state.wanted.iter();
        let wanted = wanted.filter(|(_, wanted)| wanted.server == *server && wanted.uri == uri);
        wanted.map(|(asked, _)| asked.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Member {
    fn told(&self, server: &ServerName, notification: &Notification) {
        let Notification { method, params, .. } = notification;
        let params = for_session(params.as_ref());
        let params = params.as_ref();
        match (method.as_str(), &self.hears) {
            ("notifications/resources/updated", _) => {
                let uri = updated_uri(params).unwrap_or_default();
                for asked in self.names_of(server, &uri) {
                    let known = params.filter(|_| asked != uri);
                    let known = known.and_then(|params| with_text(params, "uri", &asked));
                    self.tell(method, known.as_ref().or(params));
                }
            }
            // The lists of all together are told of when they have changed, and the tasks of the older
            // era are not for many servers as one.
            (
                "notifications/tools/list_changed"
                | "notifications/prompts/list_changed"
                | "notifications/resources/list_changed"
                | "notifications/tasks/status",
                Hears::All(_),
            ) => {}
            ("notifications/message", hears) => {
                let level = self.client.upgrade().map(|client| client.log_level());
                if level.is_some_and(|level| Level::of_message(params) >= level) {
                    let retold = match hears {
                        Hears::Server(_) => None,
                        Hears::All(_) => retelling::message(server, params),
                    };
                    self.tell(method, retold.as_ref().or(params));
                }
            }
            _ => self.tell(method, params),
        }
    }

    fn wanted_level(&self) -> Option<Level> {
        self.as_session()?.wanted_level()
    }

    fn session(&self) -> Option<u64> {
        Some(self.as_session()?.number())
    }

    fn party(&self) -> Option<Arc<Party>> {
        Some(Arc::clone(self.client.upgrade()?.party()))
    }
}

async fn follow_again(member: Arc<Member>, elsewhere: Vec<(String, ServerName, String)>) {
    for (asked, server, uri) in elsewhere {
        let followed = member.follow_where_it_is(&asked, &server, &uri, Interest::Old);
        if let Err(error) = followed.await {
            tracing::warn!(%server, %error, uri, "a resource is not followed any more");
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
