//! The two eras of the protocol: with a handshake, and without one.

use std::borrow::Cow;

use rmcp::RoleServer;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;

/// Which clients the fixture serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Both,
    /// Only those that initialize a session, as a server does that is older than 2026-07-28.
    Legacy,
    /// Only those that send stateless requests.
    Modern,
}

impl Era {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "both" => Some(Self::Both),
            "legacy" => Some(Self::Legacy),
            "modern" => Some(Self::Modern),
            _ => None,
        }
    }

    pub(crate) fn versions(self) -> Cow<'static, [ProtocolVersion]> {
        match self {
            Self::Both => Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS),
            Self::Legacy => {
                Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25))
            }
            Self::Modern => Cow::Owned(vec![ProtocolVersion::V_2026_07_28]),
        }
    }
}

/// Whether a request comes from a client that sends stateless requests.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| !version.has_initialize())
}
