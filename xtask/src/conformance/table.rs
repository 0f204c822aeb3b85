//! What is run of each suite, and what must succeed at least. Pinned: a scenario that appears,
//! vanishes or checks less than before fails the task.

/// One released version of the suite.
pub(super) struct Suite {
    /// For people.
    pub(super) label: &'static str,
    /// Where npm put it, below `node_modules`.
    pub(super) package: &'static str,
    pub(super) runs: &'static [Run],
    /// Scenarios that the suite lists and nothing here runs.
    pub(super) not_yet: &'static [Postponed],
}

/// The scenarios of a suite at one protocol revision.
pub(super) struct Run {
    /// None where the suite knows only one way to run a scenario.
    pub(super) revision: Option<&'static str>,
    pub(super) scenarios: &'static [Scenario],
}

/// One scenario and what its checks must hold.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// Checks with the status SUCCESS, at least.
    pub(super) successes: usize,
    /// Names of checks that must be among the successes.
    pub(super) required: &'static [&'static str],
    /// Names of checks that may end as WARNING, each for a reason written beside it.
    pub(super) may_warn: &'static [&'static str],
    /// Nothing else may run meanwhile, because the scenario measures time.
    pub(super) alone: bool,
}

/// Scenarios left for later.
pub(super) struct Postponed {
    pub(super) reason: &'static str,
    pub(super) names: &'static [&'static str],
}

const fn scenario(name: &'static str, successes: usize) -> Scenario {
    Scenario {
        name,
        successes,
        required: &[],
        may_warn: &[],
        alone: false,
    }
}

impl Scenario {
    const fn requiring(self, required: &'static [&'static str]) -> Self {
        Self { required, ..self }
    }

    const fn alone(self) -> Self {
        Self {
            alone: true,
            ..self
        }
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

const AUTHENTICATION: &str = "authentication";

pub(super) const SUITES: &[Suite] = &[
    Suite {
        label: "0.2.0-alpha.12",
        package: "@modelcontextprotocol/conformance",
        runs: &[
            Run {
                revision: Some("2025-11-25"),
                scenarios: &[
                    INITIALIZE,
                    TOOLS_CALL,
                    ELICITATION_DEFAULTS,
                    SSE_RETRY,
                    SCHEMA_PRESERVATION,
                ],
            },
            Run {
                revision: Some("2026-07-28"),
                scenarios: &[
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
                    SCHEMA_PRESERVATION,
                ],
            },
        ],
        not_yet: &[
            Postponed {
                reason: AUTHENTICATION,
                names: &[
                    "auth/metadata-default",
                    "auth/metadata-var1",
                    "auth/metadata-var2",
                    "auth/metadata-var3",
                    "auth/basic-cimd",
                    "auth/scope-from-www-authenticate",
                    "auth/scope-from-scopes-supported",
                    "auth/scope-omitted-when-undefined",
                    "auth/scope-step-up",
                    "auth/scope-retry-limit",
                    "auth/token-endpoint-auth-basic",
                    "auth/token-endpoint-auth-post",
                    "auth/token-endpoint-auth-none",
                    "auth/pre-registration",
                    "auth/2025-03-26-oauth-metadata-backcompat",
                    "auth/2025-03-26-oauth-endpoint-fallback",
                    "auth/resource-mismatch",
                    "auth/offline-access-scope",
                    "auth/offline-access-not-supported",
                    "auth/authorization-server-migration",
                    "auth/iss-supported",
                    "auth/iss-not-advertised",
                    "auth/iss-supported-missing",
                    "auth/iss-wrong-issuer",
                    "auth/iss-unexpected",
                    "auth/iss-normalized",
                    "auth/metadata-issuer-mismatch",
                    "auth/client-credentials-jwt",
                    "auth/client-credentials-basic",
                    "auth/enterprise-managed-authorization",
                    "auth/dpop",
                    "auth/dpop-nonce",
                    "auth/wif-jwt-bearer",
                ],
            },
            Postponed {
                reason: "the skills extension (SEP-2640), which no requirement set contains",
                names: &[
                    "sep-2640-client-no-prefetch",
                    "sep-2640-client-verify-digest",
                    "sep-2640-client-verify-size",
                    "sep-2640-client-verify-frontmatter",
                ],
            },
        ],
    },
    Suite {
        label: "0.1.16",
        package: "conformance-stable",
        runs: &[Run {
            revision: None,
            scenarios: &[
                INITIALIZE,
                scenario("tools_call", 1).requiring(&["ToolAddNumbers"]),
                ELICITATION_DEFAULTS,
                SSE_RETRY,
            ],
        }],
        not_yet: &[Postponed {
            reason: AUTHENTICATION,
            names: &[
                "auth/metadata-default",
                "auth/metadata-var1",
                "auth/metadata-var2",
                "auth/metadata-var3",
                "auth/basic-cimd",
                "auth/scope-from-www-authenticate",
                "auth/scope-from-scopes-supported",
                "auth/scope-omitted-when-undefined",
                "auth/scope-step-up",
                "auth/scope-retry-limit",
                "auth/token-endpoint-auth-basic",
                "auth/token-endpoint-auth-post",
                "auth/token-endpoint-auth-none",
                "auth/pre-registration",
                "auth/2025-03-26-oauth-metadata-backcompat",
                "auth/2025-03-26-oauth-endpoint-fallback",
                "auth/resource-mismatch",
                "auth/offline-access-scope",
                "auth/offline-access-not-supported",
                "auth/client-credentials-jwt",
                "auth/client-credentials-basic",
                "auth/cross-app-access-complete-flow",
            ],
        }],
    },
];
