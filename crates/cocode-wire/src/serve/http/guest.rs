//! Who makes a request, and whether it is let in: what a site says of everybody who comes.

use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::Response;

/// Who makes a request, as the site has found out. Two are the same if their ids are, however long
/// each of them may stay.
#[derive(Clone, Debug)]
pub struct Guest {
    id: Arc<str>,
    credential: Option<Arc<str>>,
    until: Option<SystemTime>,
}

impl Guest {
    /// A guest of that id, who may stay.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self {
            id: id.into(),
            credential: None,
            until: None,
        }
    }

    /// Comes with this: a short text by which the site knows it again, such as the hash of a token, and never
    /// what lets somebody in. What a guest begins with it can be ended without the rest that is the guest's,
    /// by [`Door::evict_by`](super::Door::evict_by). It makes no other guest.
    #[must_use]
    pub fn by(mut self, credential: impl Into<Arc<str>>) -> Self {
        self.credential = Some(credential.into());
        self
    }

    /// Has to go at that time: what stays open for as long as a client likes ends then.
    #[must_use]
    pub fn until(mut self, time: SystemTime) -> Self {
        self.until = Some(time);
        self
    }

    /// The id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it came with, if the site has said so.
    pub fn credential(&self) -> Option<&str> {
        self.credential.as_deref()
    }

    /// When the guest has to go, if ever.
    pub fn has_to_go_at(&self) -> Option<SystemTime> {
        self.until
    }

    pub(super) fn shared_id(&self) -> &Arc<str> {
        &self.id
    }

    pub(super) fn shared_credential(&self) -> Option<&Arc<str>> {
        self.credential.as_ref()
    }

    /// The same guest, who had come with this before, or with nothing that was said.
    pub(super) fn had_come_with(mut self, credential: Option<String>) -> Self {
        self.credential = credential.map(Into::into);
        self
    }
}

impl PartialEq for Guest {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Guest {}

impl Hash for Guest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// Whether a request is let in.
#[derive(Debug)]
pub enum Admission {
    /// It is; this is who makes it. `None` where everybody is the same.
    Welcome(Option<Guest>),
    /// It is not, and this is the answer.
    Refused(Box<Response<Bytes>>),
}

/// An [`Admission`], at once wherever that is possible: every request waits for it.
pub enum Admitting<'a> {
    /// It is clear.
    Now(Admission),
    /// Somebody has to be asked first.
    Later(Pin<Box<dyn Future<Output = Admission> + Send + 'a>>),
}

impl std::fmt::Debug for Admitting<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Now(admission) => formatter.debug_tuple("Now").field(admission).finish(),
            Self::Later(_) => formatter.debug_tuple("Later").finish_non_exhaustive(),
        }
    }
}
