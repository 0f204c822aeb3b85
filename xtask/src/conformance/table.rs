//! What is run of each suite, and what must succeed at least. Pinned: a scenario that appears,
//! vanishes or checks less than before fails the task.

mod auth;
mod servers;

use std::fmt;

pub(super) use self::servers::SERVER_SUITES;

/// What a suite judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

impl Side {
    pub(super) fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// With which the suite lists the scenarios of this side.
    pub(super) fn flag(self) -> &'static str {
        match self {
            Self::Client => "--client",
            Self::Server => "--server",
        }
    }

    /// How the headline of this side begins in a list.
    pub(super) fn section(self) -> &'static str {
        match self {
            Self::Client => "Client scenarios",
            Self::Server => "Server scenarios",
        }
    }

    /// How a list marks a scenario of this side where both are mixed.
    pub(super) fn tag(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// One released version of the suite.
pub(super) struct Suite {
    pub(super) side: Side,
    /// For people.
    pub(super) label: &'static str,
    /// Where npm put it, below `node_modules`.
    pub(super) package: &'static str,
    pub(super) runs: &'static [Run],
    /// Scenarios that the suite lists and nothing here runs.
    pub(super) not_run: &'static [NotRun],
}

/// Scenarios of a suite at one protocol revision.
pub(super) struct Run {
    /// None where the suite knows only one way to run a scenario.
    pub(super) revision: Option<&'static str>,
    pub(super) part: Part,
    pub(super) lists: &'static [&'static [Scenario]],
}

/// Which scenarios of a revision a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Those that the suite's requirement set of the revision demands.
    Scored,
    /// Those that the requirement set runs, too, and does not count: extensions, and what came
    /// after the revision.
    Unscored,
    /// All: the suite has no requirement set here.
    Whole,
}

/// One scenario and what its checks must hold.
#[derive(Clone, Copy)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// Checks with the status SUCCESS, at least.
    pub(super) successes: usize,
    /// Names of checks that must be among the successes, because they show how far the client came.
    pub(super) way: &'static [&'static str],
    /// Names of checks that must be among the successes, because the scenario is about them.
    pub(super) required: &'static [&'static str],
    /// Names of checks that may end as WARNING, each for a reason written beside it.
    pub(super) may_warn: &'static [&'static str],
    /// Names of required checks that need not succeed here, for a reason written beside them.
    pub(super) excused: &'static [&'static str],
    /// Where refusing is the point: what the client must say as it fails.
    pub(super) refusal: Option<&'static str>,
    /// Nothing else may run meanwhile, because the scenario measures time.
    pub(super) alone: bool,
}

/// Scenarios that are left out.
pub(super) struct NotRun {
    pub(super) reason: &'static str,
    pub(super) names: &'static [&'static str],
}

pub(super) const fn scenario(name: &'static str, successes: usize) -> Scenario {
    Scenario {
        name,
        successes,
        way: &[],
        required: &[],
        may_warn: &[],
        excused: &[],
        refusal: None,
        alone: false,
    }
}

impl Scenario {
    pub(super) const fn requiring(self, required: &'static [&'static str]) -> Self {
        Self { required, ..self }
    }

    pub(super) const fn refusing(self, because: &'static str) -> Self {
        Self {
            refusal: Some(because),
            ..self
        }
    }

    /// The same at another revision, where it has another number of checks.
    const fn with(self, successes: usize) -> Self {
        Self { successes, ..self }
    }

    /// The same where these checks cannot succeed.
    pub(super) const fn excusing(self, excused: &'static [&'static str]) -> Self {
        Self { excused, ..self }
    }

    const fn by_way_of(self, way: &'static [&'static str]) -> Self {
        Self { way, ..self }
    }

    const fn alone(self) -> Self {
        Self {
            alone: true,
            ..self
        }
    }

    /// Names of all checks that must be among the successes.
    pub(super) fn demanded(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.way.iter().chain(self.required).copied()
    }
}

impl Run {
    pub(super) fn scenarios(&self) -> impl Iterator<Item = &'static Scenario> + use<> {
        self.lists.iter().copied().flatten()
    }
}

impl fmt::Display for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.revision.unwrap_or("any revision"))?;
        formatter.write_str(match self.part {
            Part::Scored => ", scored",
            Part::Unscored => ", unscored",
            Part::Whole => "",
        })
    }
}

/// The suite checks nothing at all when the client never connects.
const INITIALIZE: Scenario = scenario("initialize", 1).requiring(&["MCPClientInitialization"]);

const ELICITATION_DEFAULTS: Scenario = scenario("elicitation-sep1034-client-defaults", 5)
    .requiring(&[
        "ClientElicitationSEP1034StringDefault",
        "ClientElicitationSEP1034IntegerDefault",
        "ClientElicitationSEP1034NumberDefault",
        "ClientElicitationSEP1034EnumDefault",
        "ClientElicitationSEP1034BooleanDefault",
    ]);

/// The reconnection must come 450 to 700 ms after the stream closed.
const SSE_RETRY: Scenario = scenario("sse-retry", 3)
    .requiring(&[
        "ClientGracefulReconnect",
        "ClientRespectsRetryField",
        "ClientSendsLastEventId",
    ])
    .alone();

const SCHEMA_PRESERVATION: Scenario = scenario("json-schema-2020-12-preservation", 9);

const TOOLS_CALL: Scenario = scenario("tools_call", 2).requiring(&["ToolAddNumbers"]);

/// The revision without a handshake, apart from authorization.
const MODERN: &[Scenario] = &[
    TOOLS_CALL,
    scenario("request-metadata", 8).requiring(&[
        "ClientSendsVersionHeader",
        "ClientPopulatesMeta",
        "ClientSendsClientInfo",
        "ClientVersionHeaderMatchesMeta",
        "ClientDeclaresRootsCapability",
        "ClientDeclaresSamplingCapability",
        "ClientDeclaresElicitationCapability",
        "ClientRetrySupportedVersion",
    ]),
    scenario("sep-2322-client-request-state", 5).requiring(&[
        "MRTRClientRequestStateEchoed",
        "MRTRClientJsonRpcIdDifferent",
        "MRTRClientNoStateOmitted",
        "MRTRClientParallelIsolation",
        "DefaultResultTypeComplete",
    ]),
    // Skips silently what the client does not send, so all of it is required.
    scenario("http-standard-headers", 9).requiring(&[
        "ClientMcpMethodHeader_tools_list",
        "ClientMcpMethodHeader_tools_call",
        "ClientMcpMethodHeader_resources_list",
        "ClientMcpMethodHeader_resources_read",
        "ClientMcpMethodHeader_prompts_list",
        "ClientMcpMethodHeader_prompts_get",
        "ClientMcpNameHeader_tools_call",
        "ClientMcpNameHeader_resources_read",
        "ClientMcpNameHeader_prompts_get",
    ]),
    scenario("http-custom-headers", 18),
    scenario("http-invalid-tool-headers", 12).requiring(&["ClientKeepsValidTool"]),
    scenario("json-schema-ref-no-deref", 1),
];

pub(super) const CLIENT_SUITES: &[Suite] = &[
    Suite {
        side: Side::Client,
        label: "0.2.0-alpha.12",
        package: "@modelcontextprotocol/conformance",
        runs: &[
            Run {
                revision: Some("2025-03-26"),
                part: Part::Whole,
                lists: &[auth::OF_2025_03_26],
            },
            Run {
                revision: Some("2025-11-25"),
                part: Part::Scored,
                lists: &[
                    &[INITIALIZE, TOOLS_CALL, ELICITATION_DEFAULTS, SSE_RETRY],
                    auth::OF_2025_11_25,
                ],
            },
            Run {
                revision: Some("2025-11-25"),
                part: Part::Unscored,
                lists: &[&[SCHEMA_PRESERVATION], auth::EXTENSIONS_AT_2025_11_25],
            },
            Run {
                revision: Some("2026-07-28"),
                part: Part::Scored,
                lists: &[MODERN, auth::OF_2026_07_28],
            },
            Run {
                revision: Some("2026-07-28"),
                part: Part::Unscored,
                lists: &[&[SCHEMA_PRESERVATION], auth::EXTENSIONS_AT_2026_07_28],
            },
        ],
        not_run: &[NotRun {
            reason: "the skills extension (SEP-2640), which no requirement set contains",
            names: &[
                "sep-2640-client-no-prefetch",
                "sep-2640-client-verify-digest",
                "sep-2640-client-verify-size",
                "sep-2640-client-verify-frontmatter",
            ],
        }],
    },
    Suite {
        side: Side::Client,
        label: "0.1.16",
        package: "conformance-stable",
        runs: &[Run {
            revision: None,
            part: Part::Whole,
            lists: &[
                &[
                    INITIALIZE,
                    TOOLS_CALL.with(1),
                    ELICITATION_DEFAULTS,
                    SSE_RETRY,
                ],
                auth::OF_STABLE,
            ],
        }],
        not_run: &[NotRun {
            reason: "wants metadata to be used that names another issuer than the one asked, \
                     which RFC 8414 section 3.3 and revision 2026-07-28 forbid; corrected in \
                     0.2.0-alpha.12, where it is run",
            names: &["auth/2025-03-26-oauth-metadata-backcompat"],
        }],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{CLIENT_SUITES, SERVER_SUITES, Scenario, Suite};

    fn suites() -> impl Iterator<Item = &'static Suite> {
        CLIENT_SUITES.iter().chain(SERVER_SUITES)
    }

    fn pinned() -> impl Iterator<Item = &'static Scenario> {
        suites()
            .flat_map(|suite| suite.runs)
            .flat_map(super::Run::scenarios)
    }

    #[test]
    fn every_scenario_demands_a_success() {
        for scenario in pinned() {
            assert!(
                scenario.successes >= scenario.demanded().count().max(1),
                "{}",
                scenario.name
            );
        }
    }

    /// Otherwise a client that gives up early would pass.
    #[test]
    fn in_authorization_the_client_gets_in_or_says_why_it_refuses() {
        for scenario in pinned().filter(|scenario| scenario.name.starts_with("auth/")) {
            let demanded: BTreeSet<&str> = scenario.demanded().collect();
            let gets_in =
                demanded.contains("ValidBearerToken") || demanded.contains("DpopAuthScheme");
            assert_ne!(gets_in, scenario.refusal.is_some(), "{}", scenario.name);
            assert!(!scenario.way.is_empty(), "{}", scenario.name);
        }
    }

    #[test]
    fn no_scenario_is_twice_in_a_run() {
        for run in suites().flat_map(|suite| suite.runs) {
            let names: BTreeSet<&str> = run.scenarios().map(|scenario| scenario.name).collect();
            assert_eq!(names.len(), run.scenarios().count(), "{run}");
        }
    }
}
