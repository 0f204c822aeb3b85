//! What clients want to hear of: changes of resources, changes of lists, and log messages.

use std::sync::Arc;

use cocode_client::ListKind;
use cocode_core::Era;
use cocode_wire::{RpcError, code};

use super::Merged;
use super::search::choice_of;
use crate::audience::{Hears, Member};
use crate::level::Level;
use crate::notices::{Filter, Subscription};
use crate::reply::Reply;
use crate::request::Request;

impl Merged {
    pub(super) async fn subscribe(&self, request: &Request) -> Result<Reply, RpcError> {
        let Some(asked) = &request.said.uri else {
            return Err(RpcError::new(code::INVALID_PARAMS, "no `uri` is named"));
        };
        let (server, uri) = self.find_resource(asked, Era::Legacy).await?;
        let (view, member) = (self.view()?, self.member(request)?);
        view.watch(request, Some(&server), None)?;
        let gone = || RpcError::new(code::INTERNAL_ERROR, "the server is not served any more");
        let entry = view.entry(&server).ok_or_else(gone)?;
        self.instance(&entry, request).await?;
        member.follow(asked, &server, &uri).await?;
        Ok(Reply::empty())
    }

    pub(super) fn unsubscribe(&self, request: &Request) -> Result<Reply, RpcError> {
        let Some(asked) = &request.said.uri else {
            return Err(RpcError::new(code::INVALID_PARAMS, "no `uri` is named"));
        };
        self.member(request)?.unfollow(asked);
        Ok(Reply::empty())
    }

    /// Serves a subscription of the stateless era until its client ends it, or the gateway does. It
    /// keeps neither the view nor its servers.
    pub(super) async fn listen(&self, request: Box<Request>) -> Result<Reply, RpcError> {
        let wanted = Filter::read(request.params.as_ref())?;
        let (view, snapshot) = self.current()?;
        view.watch(&request, None, None)?;
        let mut choice = choice_of(&request)?;
        let mut lists = snapshot.lists.clone();
        if choice.decide(view.search(), || snapshot.load()) {
            lists.set(ListKind::Tools, Arc::clone(snapshot.searched_tools()));
        }
        let hears = Hears::all(lists, choice);
        drop(snapshot);
        let subscription = Subscription::begin(request.id.clone(), Arc::clone(&request.stream));
        let (number, client) = (request.session, &request.from);
        let listening = Arc::clone(&subscription);
        let joined = self
            .audience
            .join_subscription(number, client, listening, hears);
        joined.member.attend(&view);
        let silence = view.silence(None);
        drop(view);
        let each = wanted.resource_subscriptions.iter();
        let each = each.map(|asked| self.follow(&joined.member, asked, &request));
        let followed = futures_util::future::join_all(each).await;
        subscription.agree(Filter {
            resource_subscriptions: followed.into_iter().flatten().collect(),
            ..wanted
        });
        silence.await;
        Ok(subscription.end())
    }

    /// Follows a resource, if there is one that can be followed.
    async fn follow(&self, member: &Member, asked: &str, request: &Request) -> Option<String> {
        let (server, uri) = self.find_resource(asked, Era::Modern).await.ok()?;
        let (view, snapshot) = self.current().ok()?;
        let can = snapshot.capabilities(&server);
        if can.is_some_and(|can| !can.resources_subscribe) {
            return None;
        }
        self.instance(&view.entry(&server)?, request).await.ok()?;
        drop((view, snapshot));
        match member.follow(asked, &server, &uri).await {
            Ok(()) => Some(asked.to_owned()),
            Err(error) => {
                tracing::debug!(%server, %error, uri, "a resource cannot be followed");
                None
            }
        }
    }

    /// Asks all servers that log for messages of this level. A server that is not there is asked when
    /// it is.
    pub(super) async fn set_level(&self, request: &Request) -> Result<Reply, RpcError> {
        let level = Level::asked_for(request.params.as_ref())?;
        self.view()?.watch(request, None, None)?;
        request.from.set_log_level(level);
        let servers = self.view()?.servers();
        let each = servers.values().map(async |entry| {
            let decided = request.from.served_by(entry);
            let instance = decided.as_ref().unwrap_or(&entry.instance);
            instance.keep_level();
            instance.ask_for_level().await;
        });
        futures_util::future::join_all(each).await;
        Ok(Reply::empty())
    }

    fn member(&self, request: &Request) -> Result<Arc<Member>, RpcError> {
        let gone = || RpcError::new(code::INTERNAL_ERROR, "the client is gone");
        self.audience.find(request.session).ok_or_else(gone)
    }
}
