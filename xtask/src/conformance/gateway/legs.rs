//! The arrangements of fixture and gateway, and who drives each of them.

use crate::conformance::table::{Run, Scenario};

pub(super) const DIRECT: &str = "direct";

/// One arrangement.
pub(super) struct Leg {
    pub(super) name: &'static str,
    pub(super) front: Front,
    /// Which clients the fixture itself serves.
    pub(super) era: Era,
}

/// What the suite talks to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Front {
    /// The fixture over HTTP.
    Fixture,
    /// The gateway, with the fixture behind it.
    Gateway(Upstream),
}

/// How the gateway talks to the fixture.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Upstream {
    Stdio,
    Http,
}

/// Which clients a server knows: those with a handshake, those without one, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    Both,
    Legacy,
    Modern,
}

/// The revision without a handshake.
pub(super) const MODERN_REVISION: &str = "2026-07-28";
/// The last one with a handshake.
pub(super) const LEGACY_REVISION: &str = "2025-11-25";

pub(super) const LEGS: &[Leg] = &[
    Leg {
        name: DIRECT,
        front: Front::Fixture,
        era: Era::Both,
    },
    Leg {
        name: "stdio",
        front: Front::Gateway(Upstream::Stdio),
        era: Era::Both,
    },
    Leg {
        name: "http",
        front: Front::Gateway(Upstream::Http),
        era: Era::Both,
    },
    Leg {
        name: "legacy-stdio",
        front: Front::Gateway(Upstream::Stdio),
        era: Era::Legacy,
    },
    Leg {
        name: "legacy-http",
        front: Front::Gateway(Upstream::Http),
        era: Era::Legacy,
    },
    Leg {
        name: "modern-stdio",
        front: Front::Gateway(Upstream::Stdio),
        era: Era::Modern,
    },
    Leg {
        name: "modern-http",
        front: Front::Gateway(Upstream::Http),
        era: Era::Modern,
    },
];

impl Era {
    /// As the fixture's command line has it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

impl Leg {
    pub(super) fn is_direct(&self) -> bool {
        self.front == Front::Fixture
    }

    /// A fixture of one era is driven by clients of the other: that is what the bridge is for.
    pub(super) fn has_modern_clients(&self) -> bool {
        self.era != Era::Modern
    }

    pub(super) fn has_legacy_clients(&self) -> bool {
        self.era != Era::Legacy
    }

    pub(super) fn drives(&self, run: &Run) -> bool {
        if run.revision == Some(MODERN_REVISION) {
            self.has_modern_clients()
        } else {
            self.has_legacy_clients()
        }
    }

    /// The tasks extension is younger than the legacy era: a server of that era has none.
    pub(super) fn offers(&self, scenario: &Scenario) -> bool {
        self.era != Era::Legacy || !scenario.name.starts_with("tasks-")
    }
}
