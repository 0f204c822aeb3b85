//! Resources whose changes somebody wants to hear of: subscribed to once at their server, however
//! many want that, and given up when the last one does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cocode_client::{CallError, Manager, ResourceReference};
use cocode_core::ServerName;
use tokio::sync::Semaphore;

use crate::instance::Background;

/// The resources of one server that are followed.
pub(crate) struct Following {
    manager: Manager,
    server: ServerName,
    background: Background,
    all: Mutex<BTreeMap<String, Resource>>,
}

/// One resource that is followed, was, or is about to be.
struct Resource {
    n_followers: usize,
    standing: Standing,
    /// Lets one ask the server at a time: nobody subscribes to what is just being given up.
    asking: Arc<Semaphore>,
}

/// What the server was asked about a resource.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Nothing, or it refused.
    Unasked,
    /// To tell of its changes, and nobody knows whether it does.
    Asked,
    /// To tell of its changes, which it does.
    Subscribed,
}

/// Whether a resource is newly wanted, or was before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    New,
    Old,
}

/// Somebody follows a resource, until this is dropped.
pub(crate) struct Followed {
    following: Weak<Following>,
    uri: String,
}

impl Following {
    pub(crate) fn new(manager: Manager, server: ServerName, background: Background) -> Arc<Self> {
        Arc::new(Self {
            manager,
            server,
            background,
            all: Mutex::default(),
        })
    }

    /// Makes sure that changes of a resource are heard of, for one more who wants that.
    ///
    /// Cancel safe: what was asked of the server is taken back.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        uri: &str,
        interest: Interest,
    ) -> Result<Followed, CallError> {
        // First, so that whoever gives it up meanwhile sees that it is wanted.
        let (followed, asking) = self.count(uri);
        // The semaphore is never closed.
        let _one_at_a_time = asking.acquire().await.ok();
        if self.standing(uri) != Some(Standing::Subscribed) {
            self.stand(uri, Standing::Asked);
            let reference = self.reference(uri);
            let asked = match interest {
                Interest::New => self.manager.subscribe(&reference).await.map(|()| true),
                // Somebody was told that it is so.
                Interest::Old => self.manager.subscribe_whenever(&reference).await,
            };
            match asked {
                Ok(true) => self.stand(uri, Standing::Subscribed),
                // The next one who wants it is told what the server says.
                Ok(false) => {}
                Err(error) => {
                    self.stand(uri, Standing::Unasked);
                    return Err(error);
                }
            }
        }
        Ok(followed)
    }

    fn count(self: &Arc<Self>, uri: &str) -> (Followed, Arc<Semaphore>) {
        let mut all = self.lock();
        let resource = all.entry(uri.to_owned()).or_insert_with(|| Resource {
            n_followers: 0,
            standing: Standing::Unasked,
            asking: Arc::new(Semaphore::new(1)),
        });
        resource.n_followers += 1;
        let followed = Followed {
            following: Arc::downgrade(self),
            uri: uri.to_owned(),
        };
        (followed, Arc::clone(&resource.asking))
    }

    /// One follower less. The last one ends the subscription.
    fn discount(self: &Arc<Self>, uri: &str) {
        let is_last = {
            let mut all = self.lock();
            let Some(resource) = all.get_mut(uri) else {
                return;
            };
            resource.n_followers = resource.n_followers.saturating_sub(1);
            resource.n_followers == 0
        };
        if is_last {
            let (this, uri) = (Arc::clone(self), uri.to_owned());
            self.background.run(async move { this.give_up(&uri).await });
        }
    }

    /// Ends a subscription, unless somebody wants it again.
    async fn give_up(&self, uri: &str) {
        let asking = match self.lock().get(uri) {
            Some(resource) => Arc::clone(&resource.asking),
            None => return,
        };
        // The semaphore is never closed.
        let _one_at_a_time = asking.acquire().await.ok();
        let was_asked = match self.lock().get_mut(uri) {
            Some(resource) if resource.n_followers == 0 => {
                let before = std::mem::replace(&mut resource.standing, Standing::Unasked);
                before != Standing::Unasked
            }
            _ => return,
        };
        if was_asked && let Err(error) = self.manager.unsubscribe(&self.reference(uri)).await {
            tracing::debug!(server = %self.server, %error, uri, "a subscription was not ended");
        }
        let mut all = self.lock();
        if all
            .get(uri)
            .is_some_and(|resource| resource.n_followers == 0)
        {
            all.remove(uri);
        }
    }

    fn standing(&self, uri: &str) -> Option<Standing> {
        self.lock().get(uri).map(|resource| resource.standing)
    }

    fn stand(&self, uri: &str, standing: Standing) {
        if let Some(resource) = self.lock().get_mut(uri) {
            resource.standing = standing;
        }
    }

    fn reference(&self, uri: &str) -> ResourceReference {
        ResourceReference {
            server: self.server.clone(),
            uri: uri.to_owned(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Resource>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        if let Some(following) = self.following.upgrade() {
            following.discount(&self.uri);
        }
    }
}
