//! Which keys of somebody else's table are ours to remove.

use super::oauth::OAuthShape;

/// What a change may remove from a table.
#[derive(Clone, Copy)]
pub(super) enum Owned {
    /// These keys of a server; of the table about signing in, only what has a counterpart here.
    Server {
        keys: &'static [&'static str],
        oauth: Option<OAuthShape>,
    },
    /// What has a counterpart here.
    SignIn(OAuthShape),
    /// Everything, as in a table of variables.
    Everything,
}

impl Owned {
    /// Whether a key is ours.
    pub(super) fn has(self, key: &str) -> bool {
        match self {
            Self::Server { keys, .. } => keys.contains(&key),
            Self::SignIn(shape) => shape.owns(key),
            Self::Everything => true,
        }
    }

    /// What is ours in a table inside.
    pub(super) fn inside(self, key: &str) -> Self {
        match self {
            Self::Server {
                oauth: Some(shape), ..
            } if shape.table == key => Self::SignIn(shape),
            _ => Self::Everything,
        }
    }
}
