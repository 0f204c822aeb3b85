//! One server, as it is: everything is passed on unchanged, except that tools which may not be used
//! do not exist.

use std::sync::{Arc, Weak};

use cocode_client::{Annotations, ListKind};
use cocode_core::{Era, Isolation, ServerName, ToolName, Verdict};
use cocode_wire::encode::push_member;
use cocode_wire::members::Members;
use cocode_wire::{RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::audience::{Audience, Hears, Member};
use crate::caller::{Caller, needs_session};
use crate::deeds::Watched;
use crate::downstream::{Downstream, unknown_method};
use crate::hello::Presentation;
use crate::instance::Instance;
use crate::level::Level;
use crate::notices::{Filter, Subscription};
use crate::passing::pass;
use crate::reply::Reply;
use crate::request::Request;
use crate::room::{Replying, Room};
use crate::view::{Entry, Inner};

/// The room of one server.
#[derive(Debug)]
pub(crate) struct Single {
    view: Weak<Inner>,
    name: ServerName,
    audience: Audience,
}

impl Single {
    pub(crate) fn new(view: &Arc<Inner>, name: ServerName) -> Self {
        Self {
            view: Arc::downgrade(view),
            name,
            audience: Audience::default(),
        }
    }

    pub(crate) fn name(&self) -> &ServerName {
        &self.name
    }

    pub(crate) fn audience(&self) -> &Audience {
        &self.audience
    }

    /// Tells everybody that these lists are others now.
    pub(crate) fn tell_changed(&self, changed: &[ListKind]) {
        for member in self.audience.all() {
            member.tell_changed(changed);
        }
    }

    /// Tells everybody what is not as before, if another server took the place of this one, or other
    /// tools of it may be used.
    pub(crate) fn changed(&self, before: Option<&Entry>, now: Option<&Entry>) {
        let Some(now) = now else {
            return;
        };
        let is_same = |before: &&Entry| Arc::ptr_eq(&before.instance, &now.instance);
        match before.filter(is_same) {
            Some(before) if before.spec.tools == now.spec.tools => {}
            Some(_) => self.tell_changed(&[ListKind::Tools]),
            None => self.tell_changed(&ListKind::ALL),
        }
    }

    fn entry(&self) -> Result<(Arc<Inner>, Entry), RpcError> {
        let view = self.view.upgrade();
        let found = view.and_then(|view| {
            let entry = view.entry(&self.name)?;
            Some((view, entry))
        });
        found.ok_or_else(|| {
            let what = format!("server `{}` is not served any more", self.name);
            RpcError::new(code::INTERNAL_ERROR, what)
        })
    }

    async fn greet(&self, client: &Arc<Downstream>, caller: &Caller) -> Result<Reply, RpcError> {
        let (view, entry) = self.entry()?;
        // Whether it shares is decided when it has a request.
        let other = if entry.is_per_session() {
            Some(view.instance_for(&entry, client, caller).await?)
        } else {
            view.legacy_peer(&entry).await?
        };
        let instance = other.as_ref().unwrap_or(&entry.instance);
        let session = instance.session().await?;
        let hears = Hears::Server(self.name.clone());
        self.audience.join(client, hears).attend(&view);
        let mut presentation = Presentation::of(session.server());
        if instance.is_shared() {
            presentation.lists_no_tasks();
        }
        Ok(presentation.initialized(caller.revision))
    }

    async fn reply(&self, mut request: Box<Request>) -> Result<Reply, RpcError> {
        let (view, entry) = self.entry()?;
        if let Some(refusal) = request.said.refusal.take() {
            return Err(view.refuse(&request, refusal));
        }
        let working = entry.tool_of_task(&request, request.params.as_ref());
        let watched = view.watch(&request, Some(&self.name), working.as_deref())?;
        if request.caller.era() == Era::Modern && request.method == "subscriptions/listen" {
            // It keeps nothing of the view while it lasts.
            drop((view, entry));
            return Box::pin(self.listen(request)).await;
        }
        let reply = self.reply_at(&view, &entry, request).await;
        Watched::end(watched, reply.as_ref()).await;
        reply
    }

    async fn reply_at(
        &self,
        view: &Inner,
        entry: &Entry,
        request: Box<Request>,
    ) -> Result<Reply, RpcError> {
        let instance = view
            .instance_for(entry, &request.from, &request.caller)
            .await?;
        match (request.caller.era(), request.method.as_str()) {
            // What is rare is kept out of the size of every other request.
            (Era::Legacy, "logging/setLevel") => {
                Box::pin(self.set_level(view, instance, &request)).await
            }
            (Era::Legacy, "resources/subscribe") => {
                let uri = uri_of(&request)?;
                let member = self.member(&request)?;
                Box::pin(member.follow(&uri, &self.name, &uri)).await?;
                Ok(Reply::empty())
            }
            (Era::Legacy, "resources/unsubscribe") => {
                self.member(&request)?.unfollow(&uri_of(&request)?);
                Ok(Reply::empty())
            }
            // Those of everybody who shares the server.
            (_, "tasks/list") if instance.is_shared() => Err(unknown_method("tasks/list")),
            (_, "tools/call") => self.call(view, entry, instance, request).await,
            (_, "tools/list") => {
                let reply = pass(
                    instance,
                    &request,
                    None,
                    request.params.clone(),
                    view.parking(),
                );
                Ok(self.visible(view, entry, reply.await))
            }
            _ => {
                let params = request.params.clone();
                Ok(pass(instance, &request, None, params, view.parking()).await)
            }
        }
    }

    async fn set_level(
        &self,
        view: &Inner,
        instance: Arc<Instance>,
        request: &Request,
    ) -> Result<Reply, RpcError> {
        let level = Level::asked_for(request.params.as_ref())?;
        let session = instance.session().await?;
        let facts = session.server();
        if !facts.capabilities.logging {
            return Err(unknown_method("logging/setLevel"));
        }
        request.from.set_log_level(level);
        if facts.era() == Era::Modern {
            // It is told with every request.
            return Ok(Reply::empty());
        }
        instance.keep_level();
        let kept = Arc::clone(&instance);
        let _one_at_a_time = kept.turn_to_ask_for_level().await;
        let wanted = instance.traffic.wanted_level().unwrap_or(level);
        instance.note_level(wanted);
        let params = RawJson::of(&serde_json::json!({ "level": wanted.as_str() })).ok();
        Ok(pass(instance, request, None, params, view.parking()).await)
    }

    /// Serves a subscription until its client ends it, or the gateway does, or nobody serves this
    /// server any more. It keeps neither the view nor the server.
    async fn listen(&self, request: Box<Request>) -> Result<Reply, RpcError> {
        let wanted = Filter::read(request.params.as_ref())?;
        let (view, can) = {
            let (view, entry) = self.entry()?;
            let (client, caller) = (&request.from, &request.caller);
            let instance = view.instance_for(&entry, client, caller).await?;
            let session = instance.session().await?;
            (view, session.server().capabilities.clone())
        };
        let subscription = Subscription::begin(request.id.clone(), Arc::clone(&request.stream));
        let joined = self.audience.join_subscription(
            request.session,
            &request.from,
            Arc::clone(&subscription),
            Hears::Server(self.name.clone()),
        );
        let member = &joined.member;
        member.attend(&view);
        let silence = view.silence(Some(self.name.clone()));
        drop(view);
        let uris = wanted.resource_subscriptions.into_iter();
        let uris = uris.filter(|_| can.resources_subscribe);
        let each = uris.map(async |uri| match member.follow(&uri, &self.name, &uri).await {
            Ok(()) => Some(uri),
            Err(error) => {
                tracing::debug!(server = %self.name, %error, uri, "a resource cannot be followed");
                None
            }
        });
        let followed = futures_util::future::join_all(each).await;
        subscription.agree(Filter {
            tools_list_changed: wanted.tools_list_changed && can.tools_changes,
            prompts_list_changed: wanted.prompts_list_changed && can.prompts_changes,
            resources_list_changed: wanted.resources_list_changed && can.resources_changes,
            resource_subscriptions: followed.into_iter().flatten().collect(),
        });
        silence.await;
        Ok(subscription.end())
    }

    fn member(&self, request: &Request) -> Result<Arc<Member>, RpcError> {
        let gone = || RpcError::new(code::INTERNAL_ERROR, "the client is gone");
        self.audience.find(request.session).ok_or_else(gone)
    }

    async fn call(
        &self,
        view: &Inner,
        entry: &Entry,
        instance: Arc<Instance>,
        mut request: Box<Request>,
    ) -> Result<Reply, RpcError> {
        let Some(tool) = request.said.name.clone() else {
            return Err(RpcError::new(code::INVALID_PARAMS, "no tool is named"));
        };
        let verdict = if entry.spec.tools.admits_all() && view.gate().is_open() {
            Verdict::Allow
        } else {
            // Rare enough to be kept out of the size of every other request.
            let found = Box::pin(self.look_for(view, entry, &instance, &tool)).await?;
            found.ok_or_else(|| unknown_tool(&tool))?
        };
        match verdict {
            Verdict::Allow => {}
            Verdict::Deny => {
                if let Some(deed) = request.deed.get() {
                    deed.denied();
                }
                return Err(unknown_tool(&tool));
            }
            Verdict::Ask => {
                let reason = || view.reason(entry, &tool);
                let asked = view.consents().ask(&mut request, &self.name, &tool, reason);
                let asked = Box::pin(asked).await;
                if let Some(reply) = request.unless_refused(asked)? {
                    return Ok(reply);
                }
            }
        }
        crate::headers::check(&instance, &request, &tool)?;
        let params = request.params.clone();
        let reply = pass(instance, &request, Some(tool), params, view.parking()).await;
        if verdict == Verdict::Ask {
            view.consents().answered(&request, &self.name, &reply);
        }
        Ok(reply)
    }

    /// What is to be done about a call of a tool, where not everything may be called; nothing if the
    /// server does not list such a tool. The server is not asked to call what it does not list, as
    /// its own words about that would tell which names are forbidden and which are none. What is not
    /// to be seen is looked for once more, in a list that is new: the client may have seen that.
    async fn look_for(
        &self,
        view: &Inner,
        entry: &Entry,
        instance: &Instance,
        tool: &str,
    ) -> Result<Option<Verdict>, RpcError> {
        let manager = instance.manager();
        let known = || {
            let catalog = manager.catalog();
            let listed = catalog.server(&self.name);
            let listed = listed.filter(|listed| listed.known.contains(&ListKind::Tools))?;
            let found = listed.tool(&ToolName::new(tool));
            Some(found.map(|found| {
                if entry.spec.tools.admits(tool) {
                    view.gate().decide(&self.name, tool, found.tool.annotations)
                } else {
                    Verdict::Deny
                }
            }))
        };
        let before = known();
        if let Some(Some(verdict)) = before
            && verdict.allows_listing()
        {
            return Ok(Some(verdict));
        }
        let until = Instant::now() + entry.spec.startup_timeout;
        if before.is_none() {
            manager
                .wait_for_list(&self.name, ListKind::Tools, until)
                .await;
        } else if let Err(error) = manager.list_tools(&self.name, until).await {
            tracing::debug!(server = %self.name, %error, "its tools are not listed anew");
        }
        match known() {
            Some(found) => Ok(found),
            // A server that is not there says so; one that is there and lists no tools has none.
            None => instance.session().await.map(|_session| None),
        }
    }

    /// A list without the tools that may not be used.
    fn visible(&self, view: &Inner, entry: &Entry, reply: Reply) -> Reply {
        if entry.spec.tools.admits_all() && view.gate().is_open() {
            return reply;
        }
        let Some(result) = reply.result() else {
            return reply;
        };
        let is_visible = |item: &RawValue| {
            let Some((name, annotations)) = described(item) else {
                return false;
            };
            let verdict = || view.gate().decide(&self.name, &name, annotations);
            entry.spec.tools.admits(&name) && verdict().allows_listing()
        };
        match filtered(&result, "tools", is_visible) {
            Some(filtered) => Reply::Result(filtered),
            None => RpcError::new(code::INTERNAL_ERROR, "the list of tools is none").into(),
        }
    }
}

impl Room for Single {
    fn welcome<'a>(
        self: Arc<Self>,
        client: &'a Arc<Downstream>,
        caller: &'a Arc<Caller>,
    ) -> Replying<'a> {
        Box::pin(async move {
            self.greet(client, caller)
                .await
                .unwrap_or_else(Reply::Error)
        })
    }

    fn discover<'a>(&'a self, request: &'a Request) -> Replying<'a> {
        Box::pin(async move {
            let session = match self.entry() {
                Ok((_, entry)) if entry.is_per_session() && !request.from.is_session() => {
                    Err(needs_session(&entry, &request.caller))
                }
                Ok((_, entry)) => entry.instance.session().await,
                Err(error) => Err(error),
            };
            match session {
                Ok(session) => Presentation::of(session.server()).discovered(),
                Err(error) => error.into(),
            }
        })
    }

    fn serve(self: Arc<Self>, request: Box<Request>) -> Replying<'static> {
        Box::pin(async move { self.reply(request).await.unwrap_or_else(Reply::Error) })
    }

    fn told(&self, client: &Downstream, method: &str, params: Option<&RawJson>) {
        let Ok((view, entry)) = self.entry() else {
            return;
        };
        let own = client.own(&entry);
        // A shared server must not receive notifications about one client, nor any of a principal: it would apply them
        // to the requests of others.
        let principal = client.party().principal();
        let is_personal = method == "notifications/roots/list_changed" || principal.is_some();
        let shared = || {
            client
                .served_by(&entry)
                .unwrap_or_else(|| Arc::clone(&entry.instance))
        };
        let Some(instance) = own.or_else(|| (!is_personal).then(shared)) else {
            return;
        };
        if view
            .count_notification(client.party(), &self.name, method)
            .is_err()
        {
            tracing::debug!(method, "a notification is dropped: a limit is reached");
            return;
        }
        client.outbox.tell(&view, &instance, method, params);
    }

    fn left(&self) {
        self.audience.prune();
        if let Some(view) = self.view.upgrade() {
            view.session_ended();
        }
    }
}

fn uri_of(request: &Request) -> Result<String, RpcError> {
    let uri = request.said.uri.clone();
    uri.ok_or_else(|| RpcError::new(code::INVALID_PARAMS, "no `uri` is named"))
}

pub(crate) fn unknown_tool(tool: &str) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, format!("Unknown tool: {tool}"))
}

/// The name of a tool, and what is said about its effects.
fn described(item: &RawValue) -> Option<(String, Annotations)> {
    #[derive(Deserialize)]
    struct Item<'a> {
        name: String,
        #[serde(borrow, default)]
        annotations: Option<&'a RawValue>,
    }
    let item: Item<'_> = serde_json::from_str(item.get()).ok()?;
    let annotations = item.annotations.map(|raw| serde_json::from_str(raw.get()));
    Some((
        item.name,
        annotations.and_then(Result::ok).unwrap_or_default(),
    ))
}

/// A result whose list has only the items that are wanted; everything else is as it was.
fn filtered(
    result: &RawJson,
    list: &str,
    is_wanted: impl Fn(&RawValue) -> bool,
) -> Option<RawJson> {
    let members: Members<'_> = result.decode().ok()?;
    let mut text = Vec::with_capacity(result.as_bytes().len());
    text.push(b'{');
    for (key, value) in &members.0 {
        if text.len() > 1 {
            text.push(b',');
        }
        if key != list {
            // What was filtered is not for everybody.
            let is_scope = key == "cacheScope";
            push_member(
                &mut text,
                key,
                if is_scope { "\"private\"" } else { value.get() },
            );
            continue;
        }
        let items: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
        let mut kept = b"[".to_vec();
        for item in items.into_iter().filter(|item| is_wanted(item)) {
            if kept.len() > 1 {
                kept.push(b',');
            }
            kept.extend_from_slice(item.get().as_bytes());
        }
        kept.push(b']');
        push_member(&mut text, key, std::str::from_utf8(&kept).ok()?);
    }
    text.push(b'}');
    RawJson::parse(text).ok()
}

impl Entry {
    /// Whether every session gets a server of its own, by configuration.
    pub(crate) fn is_per_session(&self) -> bool {
        self.spec.isolation == Isolation::PerSession
    }
}
