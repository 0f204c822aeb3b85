//! What clients want to hear of: changes of resources, changes of lists, and log messages.

use std::sync::Arc;

use cocode_client::{RequestOptions, StateKind};
use cocode_core::Era;
use cocode_wire::{RawJson, RpcError, code};

use super::Merged;
use super::audience::{Followed, Member};
use crate::instance::Instance;
use crate::level::Level;
use crate::notices::{Filter, Subscription};
use crate::reply::Reply;
use crate::request::Request;

impl Merged {
    /// Makes sure that everybody hears every server that there is, and follows there what they
    /// followed before.
    pub(super) fn attend(self: &Arc<Self>) {
        let Ok(view) = self.view() else {
            return;
        };
        let servers = view.servers();
        for member in self.audience.all() {
            member.attend_only(|name| servers.contains_key(name));
            for (name, entry) in &*servers {
                let own = member.own(name);
                let instance = own.unwrap_or_else(|| Arc::clone(&entry.instance));
                let elsewhere = member.attend(&instance);
                if !elsewhere.is_empty() {
                    view.background(follow_again(Arc::clone(&member), instance, elsewhere));
                }
            }
        }
    }

    pub(super) async fn subscribe(&self, request: &Request) -> Result<Reply, RpcError> {
        let Some(asked) = &request.said.uri else {
            return Err(RpcError::new(code::INVALID_PARAMS, "no `uri` is named"));
        };
        let (server, uri) = self.find_resource(asked, Era::Legacy).await?;
        let (view, member) = (self.view()?, self.member(request)?);
        let gone = || RpcError::new(code::INTERNAL_ERROR, "the server is not served any more");
        let entry = view.entry(&server).ok_or_else(gone)?;
        let instance = self.instance(&entry, request).await?;
        member.follow(asked, &instance, &uri).await?;
        Ok(Reply::empty())
    }

    pub(super) fn unsubscribe(&self, request: &Request) -> Result<Reply, RpcError> {
        let Some(asked) = &request.said.uri else {
            return Err(RpcError::new(code::INVALID_PARAMS, "no `uri` is named"));
        };
        self.member(request)?.unfollow(asked);
        Ok(Reply::empty())
    }

    /// Serves a subscription of the stateless era until its client ends it, or the gateway does.
    pub(super) async fn listen(&self, request: Request) -> Result<Reply, RpcError> {
        let wanted = Filter::read(request.params.as_ref())?;
        let each = wanted.resource_subscriptions.iter();
        let each = each.map(|asked| self.followed(asked));
        let followed = futures_util::future::join_all(each).await;
        let followed: Vec<_> = followed.into_iter().flatten().collect();
        let agreed = Filter {
            resource_subscriptions: followed.iter().map(|(asked, _)| asked.clone()).collect(),
            ..wanted
        };
        let number = request.session;
        let (view, snapshot) = self.current()?;
        let lists = snapshot.lists.clone();
        drop(snapshot);
        let subscription = Subscription::begin(request.id.clone(), agreed, request.stream);
        let member = self
            .audience
            .join_subscription(number, Arc::clone(&subscription), lists);
        let _leaving = Leaving {
            merged: self,
            number,
        };
        for entry in view.servers().values() {
            member.attend(&entry.instance);
        }
        let ending = view.ending();
        drop(view);
        for (asked, followed) in followed {
            member.add(&asked, followed);
        }
        ending.await;
        Ok(subscription.end())
    }

    /// Follows a resource, if there is one that can be followed.
    async fn followed(&self, asked: &str) -> Option<(String, Followed)> {
        let (server, uri) = self.find_resource(asked, Era::Modern).await.ok()?;
        let (view, snapshot) = self.current().ok()?;
        let can = snapshot.capabilities(&server);
        if can.is_some_and(|can| !can.resources_subscribe) {
            return None;
        }
        let instance = view.entry(&server)?.instance;
        match Followed::begin(&instance, &uri).await {
            Ok(followed) => Some((asked.to_owned(), followed)),
            Err(error) => {
                tracing::debug!(%server, %error, uri, "a resource cannot be followed");
                None
            }
        }
    }

    /// Asks all servers that log for messages of this level. A server that is not there yet is asked
    /// when it is.
    pub(super) async fn set_level(&self, request: &Request) -> Result<Reply, RpcError> {
        let level = Level::asked_for(request.params.as_ref())?;
        request.from.set_log_level(level);
        let view = self.view()?;
        let mut now = Vec::new();
        for (name, entry) in &*view.servers() {
            let own = request.from.own(name);
            let instance = own.unwrap_or_else(|| Arc::clone(&entry.instance));
            let wanted = view.level_for(&instance, request, level);
            let status = instance.manager().status();
            let state = status.first().map(|status| status.state.kind());
            match state {
                Some(StateKind::Ready) => now.push(ask_for_level(instance, wanted)),
                Some(StateKind::Starting | StateKind::Reconnecting) => {
                    view.background(ask_for_level(instance, wanted));
                }
                _ => {}
            }
        }
        futures_util::future::join_all(now).await;
        Ok(Reply::empty())
    }

    fn member(&self, request: &Request) -> Result<Arc<Member>, RpcError> {
        let gone = || RpcError::new(code::INTERNAL_ERROR, "the client is gone");
        self.audience.find(request.session).ok_or_else(gone)
    }
}

async fn follow_again(
    member: Arc<Member>,
    instance: Arc<Instance>,
    elsewhere: Vec<(String, String)>,
) {
    for (asked, uri) in elsewhere {
        if let Err(error) = member.follow(&asked, &instance, &uri).await {
            tracing::warn!(server = %instance.name(), %error, uri, "a resource is not followed any more");
        }
    }
}

async fn ask_for_level(instance: Arc<Instance>, level: Level) {
    let server = instance.name();
    let session = match instance.session().await {
        Ok(session) => session,
        Err(error) => {
            tracing::debug!(%server, %error, "not asked for log messages");
            return;
        }
    };
    let facts = session.server();
    if !facts.capabilities.logging || facts.era() == Era::Modern {
        // One of the stateless era is told with every request.
        return;
    }
    let Ok(params) = RawJson::of(&serde_json::json!({ "level": level.as_str() })) else {
        return;
    };
    let options = RequestOptions::default();
    let asked = session
        .request("logging/setLevel", Some(&params), options)
        .await;
    if let Err(error) = asked {
        tracing::warn!(%server, %error, "the server did not take the level of its log messages");
    }
}

/// A subscription that ends when this is dropped.
struct Leaving<'a> {
    merged: &'a Merged,
    number: u64,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.merged.audience.leave(self.number);
    }
}
