//! The server scenarios, with every check that succeeds against the fixture itself.

use super::{NotRun, Part, Run, Scenario, Side, Suite, scenario};

/// A scenario all of whose checks are known by name.
const fn checked(name: &'static str, checks: &'static [&'static str]) -> Scenario {
    scenario(name, checks.len()).requiring(checks)
}

/// The same scenarios where the suite also checks that messages are what the schema wants.
const fn with_schema<const N: usize>(mut scenarios: [Scenario; N]) -> [Scenario; N] {
    let mut index = 0;
    while index < N {
        scenarios[index] = scenarios[index].with(scenarios[index].successes + 1);
        index += 1;
    }
    scenarios
}

/// Of every revision.
const COMMON: [Scenario; 17] = [
    checked("completion-complete", &["CompletionComplete"]),
    checked("tools-call-simple-text", &["ToolsCallSimpleText"]),
    checked("tools-call-image", &["ToolsCallImage"]),
    checked("tools-call-audio", &["ToolsCallAudio"]),
    checked(
        "tools-call-embedded-resource",
        &["ToolsCallEmbeddedResource"],
    ),
    checked("tools-call-mixed-content", &["ToolsCallMixedContent"]),
    checked("tools-call-error", &["ToolsCallError"]),
    checked("tools-call-with-progress", &["ToolsCallWithProgress"]),
    checked("resources-list", &["ResourcesList"]),
    checked("resources-read-text", &["ResourcesReadText"]),
    checked("resources-read-binary", &["ResourcesReadBinary"]),
    checked("resources-templates-read", &["ResourcesTemplateRead"]),
    checked("prompts-list", &["PromptsList"]),
    checked("prompts-get-simple", &["PromptsGetSimple"]),
    checked("prompts-get-with-args", &["PromptsGetWithArgs"]),
    checked(
        "prompts-get-embedded-resource",
        &["PromptsGetEmbeddedResource"],
    ),
    checked("prompts-get-with-image", &["PromptsGetWithImage"]),
];

/// Of every revision, and without a look at the schema.
const TRANSPORT: [Scenario; 2] = [
    // An answer of one message may be JSON; only streams can fail to work.
    checked(
        "server-sse-multiple-streams",
        &["ServerAcceptsMultiplePostStreams"],
    ),
    checked(
        "dns-rebinding-protection",
        &["DNSRebindingRejected", "LocalhostHostAccepted"],
    ),
];

/// Of the revisions with a handshake.
const LEGACY: [Scenario; 9] = [
    checked("logging-set-level", &["LoggingSetLevel"]),
    checked("ping", &["Ping"]),
    checked("tools-call-with-logging", &["ToolsCallWithLogging"]),
    checked("tools-call-sampling", &["ToolsCallSampling"]),
    checked("tools-call-elicitation", &["ToolsCallElicitation"]),
    checked(
        "elicitation-sep1034-defaults",
        &[
            "ElicitationSEP1034StringDefault",
            "ElicitationSEP1034IntegerDefault",
            "ElicitationSEP1034NumberDefault",
            "ElicitationSEP1034EnumDefault",
            "ElicitationSEP1034BooleanDefault",
        ],
    ),
    checked(
        "elicitation-sep1330-enums",
        &[
            "ElicitationSEP1330UntitledSingle",
            "ElicitationSEP1330TitledSingle",
            "ElicitationSEP1330LegacyEnumNames",
            "ElicitationSEP1330UntitledMulti",
            "ElicitationSEP1330TitledMulti",
        ],
    ),
    checked("resources-subscribe", &["ResourcesSubscribe"]),
    checked("resources-unsubscribe", &["ResourcesUnsubscribe"]),
];

const INITIALIZE: Scenario = checked(
    "server-initialize",
    &["ServerInitialize", "ServerSessionIdVisibleAscii"],
);

const TOOLS_LIST: Scenario = checked("tools-list", &["ToolsList", "ToolsNameFormat"]);

const TOOLS_LIST_IN_ORDER: Scenario = checked(
    "tools-list",
    &[
        "ToolsList",
        "ToolsNameFormat",
        "ToolsListDeterministicOrder",
    ],
);

const SCHEMA_2020_12: Scenario = checked(
    "json-schema-2020-12",
    &[
        "JsonSchema2020_12ToolFound",
        "JsonSchema2020_12$Schema",
        "JsonSchema2020_12$Defs",
        "JsonSchema2020_12AdditionalProperties",
        "JsonSchema2020_12CompositionKeywords",
        "JsonSchema2020_12ConditionalKeywords",
        "JsonSchema2020_12AnchorKeyword",
    ],
);

const SESSIONS: [Scenario; 2] = [
    checked(
        "server-session-lifecycle",
        &[
            "SessionInitializedAccepted",
            "SessionDeleteAccepted",
            "SessionTerminatedReturns404",
        ],
    ),
    checked(
        "server-sse-polling",
        &[
            "ServerSendsPrimingEvent",
            "ServerSendsRetryField",
            "ServerDisconnectResume",
        ],
    ),
];

/// Three of its names stand for several checks.
const STATELESS: Scenario = scenario("server-stateless", 30).requiring(&[
    "RequestMetaInvalid",
    "HttpServerMetaInvalid400",
    "RequestMetaClientInfoOptional",
    "ServerImplementsDiscover",
    "ServerIdentifiesInResultMeta",
    "ServerDeclaresPromptsInDiscover",
    "DiscoverCapabilitiesMatchHandlers",
    "ServerUnsupportedVersionError",
    "HttpServerUnsupportedVersion400",
    "HttpServerHeaderMismatch400",
    "ServerRejectsUndeclaredCapability",
    "MissingCapabilityHttp400",
    "HttpServerMethodNotFound404initialize",
    "HttpServerMethodNotFound404ping",
    "HttpServerMethodNotFound404loggingsetLevel",
    "HttpServerMethodNotFound404resourcessubscribe",
    "HttpServerMethodNotFound404resourcesunsubscribe",
    "HttpServerMethodNotFound404",
    "HttpServerNoIndependentRequestsOnStream",
    "ServerNoLogWithoutLogLevel",
    "ServerSendsSubscriptionAck",
    "ServerTagsSubscriptionId",
    "ServerHonorsNotificationFilter",
    "ServerSendsPromptsListChangedOnSubscription",
    "ServerSendsToolsListChangedOnSubscription",
    "HttpServerErrorJsonrpcId",
]);

/// Of the revision without a handshake.
const MODERN: [Scenario; 17] = [
    TOOLS_LIST_IN_ORDER,
    checked(
        "sep-2164-resource-not-found",
        &[
            "ResourcesNotFoundNoEmptyContents",
            "ResourcesNotFoundErrorCode",
            "ResourcesNotFoundDataUri",
        ],
    ),
    checked(
        "caching",
        &[
            "ToolsListCachingHints",
            "PromptsListCachingHints",
            "ResourcesListCachingHints",
            "ResourcesTemplatesListCachingHints",
            "ResourcesReadCachingHints",
            "TtlNonNegative",
            "CacheScopeValid",
        ],
    ),
    checked(
        "input-required-result-basic-elicitation",
        &[
            "InputRequiredResultElicitationIncomplete",
            "InputRequiredResultElicitationComplete",
        ],
    ),
    checked(
        "input-required-result-basic-sampling",
        &[
            "InputRequiredResultSamplingIncomplete",
            "InputRequiredResultSamplingComplete",
        ],
    ),
    checked(
        "input-required-result-basic-list-roots",
        &[
            "InputRequiredResultListRootsIncomplete",
            "InputRequiredResultListRootsComplete",
        ],
    ),
    checked(
        "input-required-result-request-state",
        &[
            "InputRequiredResultRequestStateIncomplete",
            "InputRequiredResultRequestStateComplete",
        ],
    ),
    checked(
        "input-required-result-multiple-input-requests",
        &[
            "InputRequiredResultMultipleInputsIncomplete",
            "InputRequiredResultMultipleInputsComplete",
        ],
    ),
    checked(
        "input-required-result-multi-round",
        &[
            "InputRequiredResultMultiRoundR1",
            "InputRequiredResultMultiRoundR2",
            "InputRequiredResultMultiRoundR3",
        ],
    ),
    checked(
        "input-required-result-missing-input-response",
        &["InputRequiredResultMissingResponseRerequests"],
    ),
    checked(
        "input-required-result-non-tool-request",
        &[
            "InputRequiredResultNonToolIncomplete",
            "InputRequiredResultNonToolComplete",
        ],
    ),
    checked("input-required-result-result-type", &["ResultTypeIncluded"]),
    checked(
        "input-required-result-unsupported-methods",
        &["NotOnUnsupportedRequests"],
    ),
    checked(
        "input-required-result-tampered-state",
        &["RejectTamperedState"],
    ),
    checked(
        "input-required-result-capability-check",
        &["RespectClientCapabilities"],
    ),
    checked(
        "input-required-result-ignore-extra-params",
        &["IgnoreUnexpectedParams"],
    ),
    checked(
        "input-required-result-validate-input",
        &["ValidateInputResponses", "ErrorOnProtocolError"],
    ),
];

const HEADERS: [Scenario; 2] = [
    checked(
        "http-header-validation",
        &[
            "ServerRejectsMismatchedMethodHeader",
            "ServerRejectsMismatchedMethodHeaderErrorCode",
            "ServerRejectsMissingMethodHeader",
            "ServerRejectsMissingMethodHeaderErrorCode",
            "ServerRejectsMismatchedNameHeader",
            "ServerRejectsMismatchedNameHeaderErrorCode",
            "ServerAcceptsWhitespaceHeaderValue",
            "ServerRejectsMissingNameHeader",
            "ServerRejectsMissingNameHeaderErrorCode",
            "ServerAcceptsLowercaseHeaderName",
            "ServerAcceptsUppercaseHeaderName",
            "ServerRejectsCaseMismatchValue",
            "ServerRejectsCaseMismatchValueErrorCode",
        ],
    ),
    checked(
        "http-custom-header-server-validation",
        &[
            "ServerAcceptsValidBase64",
            "ServerRejectsInvalidBase64Padding",
            "ServerRejectsInvalidBase64PaddingErrorCode",
            "ServerRejectsInvalidBase64Chars",
            "ServerRejectsInvalidBase64CharsErrorCode",
            "ServerLiteralMissingBase64Prefix",
            "ServerLiteralMissingBase64Suffix",
            "ServerRejectsMissingCustomHeader",
            "ServerRejectsMissingCustomHeaderErrorCode",
        ],
    ),
];

/// The extension `io.modelcontextprotocol/tasks`.
const TASKS: [Scenario; 9] = [
    checked(
        "tasks-lifecycle",
        &[
            "TasksSyncToolCall",
            "TasksServerTaskCreation",
            "TasksGetDuringWorking",
            "TasksGetTerminalInlinedResult",
            "TasksToolErrorCompletedIsError",
            "TasksProtocolErrorFailedShape",
            "TasksCancelEmptyAck",
            "TasksCancelTerminalIdempotentAck",
        ],
    ),
    checked(
        "tasks-capability-negotiation",
        &[
            "TasksExtensionAdvertised",
            "TasksMethodsGatedWithoutExtension",
            "TasksToolsCallWithoutExtensionSync",
            "TasksPerRequestMetaOptIn",
        ],
    ),
    checked(
        "tasks-wire-fields",
        &[
            "TasksWireFieldRenames",
            "TasksNoEarlyTtlExpiry",
            "TasksNoRelatedTaskMetaOnInlinedResult",
        ],
    ),
    checked(
        "tasks-request-state-removal",
        &[
            "TasksCreateResultNoRequestState",
            "TasksGetDetailedNoRequestState",
        ],
    ),
    checked(
        "tasks-mrtr-input",
        &[
            "TasksMRTRInputRequestsOnTasksGet",
            "TasksMRTRTasksUpdateResumes",
            "TasksMRTRPartialFulfillment",
        ],
    ),
    checked(
        "tasks-request-headers",
        &[
            "TasksHeadersTolerateMcpMethodOnToolsCall",
            "Sep2663RoutingHeadersAcceptedOnTasksGet",
            "TasksHeadersRejectMismatchedMethod",
            "Sep2663ServerRejectsMismatchedMcpNameOnTasksGet",
        ],
    ),
    checked(
        "tasks-dispatch-and-envelope",
        &[
            "TasksRemovedTasksResult",
            "TasksRemovedTasksList",
            "TasksServerDirectedCreationNoHint",
            "TasksLegacyTaskParamIgnored",
            "TasksImmediateResultShortcut",
            "TasksResultTypeCompleteOnNonTaskResponses",
            "TasksStrongConsistencyImmediateGet",
            "TasksGetUnknownTaskIdRejected",
        ],
    ),
    checked(
        "tasks-required-task-error",
        &[
            "Sep2663ServerReturnsMissingCapabilityWhenRequired",
            "Sep2663ServerReturnsMissingCapabilityDataShape",
        ],
    ),
    checked(
        "tasks-mrtr-composition",
        &["Sep2663MrtrSynchronousBeforeTaskCreation"],
    ),
];

pub(in crate::conformance) const SERVER_SUITES: &[Suite] = &[
    Suite {
        side: Side::Server,
        label: "0.2.0-alpha.12",
        package: "@modelcontextprotocol/conformance",
        runs: &[
            Run {
                revision: Some("2025-11-25"),
                part: Part::Scored,
                lists: &[
                    &with_schema([INITIALIZE, TOOLS_LIST]),
                    &with_schema(COMMON),
                    &with_schema(LEGACY),
                    &TRANSPORT,
                ],
            },
            Run {
                revision: Some("2025-11-25"),
                part: Part::Unscored,
                lists: &[&with_schema([SCHEMA_2020_12]), &SESSIONS],
            },
            Run {
                revision: Some("2026-07-28"),
                part: Part::Scored,
                lists: &[
                    &[STATELESS],
                    &with_schema(COMMON),
                    &with_schema(MODERN),
                    &TRANSPORT,
                ],
            },
            Run {
                revision: Some("2026-07-28"),
                part: Part::Unscored,
                lists: &[
                    &with_schema([SCHEMA_2020_12]),
                    &with_schema(HEADERS),
                    &with_schema(TASKS),
                ],
            },
        ],
        not_run: &[
            NotRun {
                reason: "the skills extension (SEP-2640), which no requirement set contains",
                names: &[
                    "sep-2640-skills-directory",
                    "sep-2640-skills-enumeration",
                    "sep-2640-skills-manifest",
                ],
            },
            NotRun {
                reason: "the suite itself always skips it",
                names: &["tasks-status-notifications"],
            },
        ],
    },
    Suite {
        side: Side::Server,
        label: "0.1.16",
        package: "conformance-stable",
        runs: &[Run {
            revision: None,
            part: Part::Whole,
            lists: &[
                &[
                    checked("server-initialize", &["ServerInitialize"]),
                    checked("tools-list", &["ToolsList"]),
                ],
                &COMMON,
                &LEGACY,
                &TRANSPORT,
            ],
        }],
        not_run: &[NotRun {
            reason: "not in its set of active ones; run from 0.2.0-alpha.12",
            names: &["json-schema-2020-12", "server-sse-polling"],
        }],
    },
];
