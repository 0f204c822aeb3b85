//! The authorization scenarios, with the checks that show how far the client came.
//!
//! Many of the suite's own checks hold for a client that never asked for anything, so each scenario
//! demands the whole way: to a tool call with a token, or to the step at which to refuse. Counts
//! differ between revisions by the handshake and by what registration must say.

use super::{Scenario, scenario};

/// Finds the authorization server.
const FOUND: &[&str] = &["PRMPathBasedRequested", "AuthorizationServerMetadata"];

/// Is registered, asks a user, and does not fetch a token.
const ASKED: &[&str] = &[
    "PRMPathBasedRequested",
    "AuthorizationServerMetadata",
    "ClientRegistration",
    "AuthorizationRequest",
    "PKCE Code Challenge",
    "PKCE S256 Method",
];

/// The whole way of a client that is known already.
const LET_IN: &[&str] = &[
    "PRMPathBasedRequested",
    "AuthorizationServerMetadata",
    "AuthorizationRequest",
    "PKCE Code Challenge",
    "PKCE S256 Method",
    "TokenRequest",
    "PKCE Code Verifier",
    "PKCE Verifier Validation",
    "ValidBearerToken",
];

/// The whole way of a client that has to register.
const REGISTERED_AND_LET_IN: &[&str] = &[
    "PRMPathBasedRequested",
    "AuthorizationServerMetadata",
    "ClientRegistration",
    "AuthorizationRequest",
    "PKCE Code Challenge",
    "PKCE S256 Method",
    "TokenRequest",
    "PKCE Code Verifier",
    "PKCE Verifier Validation",
    "ValidBearerToken",
];

/// The whole way without a user.
const LET_IN_ALONE: &[&str] = &[
    "PRMPathBasedRequested",
    "AuthorizationServerMetadata",
    "TokenRequest",
    "ValidBearerToken",
];

/// Registers and gets a token, which the server does not report as a bearer token.
const GOT_TOKEN: &[&str] = &[
    "PRMPathBasedRequested",
    "AuthorizationServerMetadata",
    "ClientRegistration",
    "AuthorizationRequest",
    "PKCE Code Challenge",
    "PKCE S256 Method",
    "TokenRequest",
    "PKCE Code Verifier",
    "PKCE Verifier Validation",
];

const RESOURCE: &[&str] = &[
    "Resource parameter in authorization request",
    "Resource parameter in token request",
    "Resource parameter is valid canonical URI",
    "Resource parameter consistency",
    "Resource parameter matches protected resource metadata",
];

/// Of the resource parameter, those checks that the stable suite has, too.
const METHOD: &[&str] = &[
    "Token endpoint authentication method",
    "Resource parameter in authorization request",
    "Resource parameter in token request",
    "Resource parameter is valid canonical URI",
    "Resource parameter consistency",
];

const fn metadata(name: &'static str) -> Scenario {
    scenario(name, 18)
        .by_way_of(REGISTERED_AND_LET_IN)
        .requiring(RESOURCE)
}

/// The stable suite has no checks of the resource parameter here.
const fn stable_metadata(name: &'static str) -> Scenario {
    metadata(name).with(13).requiring(&[])
}

const fn method(name: &'static str) -> Scenario {
    scenario(name, 19)
        .by_way_of(REGISTERED_AND_LET_IN)
        .requiring(METHOD)
}

const BASIC_CIMD: Scenario = scenario("auth/basic-cimd", 13)
    .by_way_of(LET_IN)
    .requiring(&["Client ID Metadata Document Usage"]);

const PRE_REGISTRATION: Scenario = scenario("auth/pre-registration", 13)
    .by_way_of(LET_IN)
    .requiring(&["Pre-registration authentication"]);

const SCOPE_FROM_CHALLENGE: Scenario = scenario("auth/scope-from-www-authenticate", 14)
    .by_way_of(REGISTERED_AND_LET_IN)
    .requiring(&["Client scope selection from WWW-Authenticate header"]);

const SCOPE_FROM_METADATA: Scenario = scenario("auth/scope-from-scopes-supported", 14)
    .by_way_of(REGISTERED_AND_LET_IN)
    .requiring(&["Client scope selection from scopes_supported"]);

const SCOPE_OMITTED: Scenario = scenario("auth/scope-omitted-when-undefined", 14)
    .by_way_of(REGISTERED_AND_LET_IN)
    .requiring(&["Client scope omission when scopes_supported undefined"]);

const STEP_UP: Scenario = scenario("auth/scope-step-up", 22)
    .by_way_of(REGISTERED_AND_LET_IN)
    .requiring(&[
        "Client initial scope selection for step-up auth",
        "Client scope escalation for step-up auth",
    ]);

/// The way is pinned for one attempt: up to three are right.
const RETRY_LIMIT: Scenario = scenario("auth/scope-retry-limit", 10)
    .by_way_of(GOT_TOKEN)
    .requiring(&["Client retry limit for scope escalation"])
    .refusing(r#"(HTTP 403): Bearer error="insufficient_scope", scope="mcp:admin""#);

const RESOURCE_MISMATCH: Scenario = scenario("auth/resource-mismatch", 2)
    .by_way_of(&["PRMPathBasedRequested"])
    .requiring(&["Client rejects mismatched resource"])
    .refusing("describes https://evil.example.com/mcp, which is not the server at ");

const OFFLINE_ACCESS: Scenario = scenario("auth/offline-access-scope", 13)
    .by_way_of(LET_IN)
    .requiring(&["Client requests offline_access scope"]);

const NO_OFFLINE_ACCESS: Scenario = scenario("auth/offline-access-not-supported", 14)
    .by_way_of(REGISTERED_AND_LET_IN)
    .requiring(&["Client does not request unsupported offline_access"]);

const CREDENTIALS_JWT: Scenario = scenario("auth/client-credentials-jwt", 8)
    .by_way_of(LET_IN_ALONE)
    .requiring(&["ClientCredentialsJwtVerified"]);

const CREDENTIALS_BASIC: Scenario = scenario("auth/client-credentials-basic", 8)
    .by_way_of(LET_IN_ALONE)
    .requiring(&["ClientCredentialsBasicAuth"]);

const fn enterprise(name: &'static str) -> Scenario {
    scenario(name, 9)
        .by_way_of(LET_IN_ALONE)
        .requiring(&["CompleteFlowTokenExchange", "CompleteFlowJwtBearer"])
}

const ENTERPRISE: Scenario = enterprise("auth/enterprise-managed-authorization");

const WORKLOAD: Scenario = scenario("auth/wif-jwt-bearer", 8)
    .by_way_of(LET_IN_ALONE)
    .requiring(&["WifAssertionVerified"]);

const DPOP: Scenario = scenario("auth/dpop", 12).by_way_of(GOT_TOKEN).requiring(&[
    "DpopTokenRequestProof",
    "DpopAuthScheme",
    "DpopFreshProof",
]);

const DPOP_NONCE: Scenario = scenario("auth/dpop-nonce", 14)
    .by_way_of(GOT_TOKEN)
    .requiring(&[
        "DpopTokenRequestProof",
        "DpopAuthScheme",
        "DpopFreshProof",
        "DpopAsNonce",
        "DpopRsNonce",
    ]);

/// Servers from before protected resource metadata, without any metadata in the end.
const ENDPOINT_FALLBACK: Scenario = scenario("auth/2025-03-26-oauth-endpoint-fallback", 7)
    .by_way_of(&[
        "ClientRegistration",
        "AuthorizationRequest",
        "TokenRequest",
        "ValidBearerToken",
    ]);

pub(super) const OF_2025_03_26: &[Scenario] = &[
    scenario("auth/2025-03-26-oauth-metadata-backcompat", 12).by_way_of(&[
        "AuthorizationServerMetadata",
        "ClientRegistration",
        "AuthorizationRequest",
        "PKCE Code Challenge",
        "PKCE S256 Method",
        "TokenRequest",
        "PKCE Code Verifier",
        "PKCE Verifier Validation",
        "ValidBearerToken",
    ]),
    ENDPOINT_FALLBACK,
];

pub(super) const OF_2025_11_25: &[Scenario] = &[
    metadata("auth/metadata-default"),
    metadata("auth/metadata-var1"),
    metadata("auth/metadata-var2"),
    metadata("auth/metadata-var3"),
    BASIC_CIMD,
    SCOPE_FROM_CHALLENGE,
    SCOPE_FROM_METADATA,
    SCOPE_OMITTED,
    STEP_UP,
    RETRY_LIMIT,
    method("auth/token-endpoint-auth-basic"),
    method("auth/token-endpoint-auth-post"),
    method("auth/token-endpoint-auth-none"),
    PRE_REGISTRATION,
];

pub(super) const EXTENSIONS_AT_2025_11_25: &[Scenario] = &[
    CREDENTIALS_JWT,
    CREDENTIALS_BASIC,
    ENTERPRISE,
    DPOP,
    DPOP_NONCE,
    WORKLOAD,
];

pub(super) const OF_2026_07_28: &[Scenario] = &[
    metadata("auth/metadata-default"),
    metadata("auth/metadata-var1"),
    metadata("auth/metadata-var2"),
    metadata("auth/metadata-var3"),
    BASIC_CIMD.with(12),
    SCOPE_FROM_CHALLENGE,
    SCOPE_FROM_METADATA,
    SCOPE_OMITTED,
    STEP_UP.with(25).requiring(&[
        "Client initial scope selection for step-up auth",
        "Client scope escalation for step-up auth",
        "Client accumulates previously-granted scopes on re-authorization",
    ]),
    RETRY_LIMIT.with(11),
    method("auth/token-endpoint-auth-basic"),
    method("auth/token-endpoint-auth-post"),
    method("auth/token-endpoint-auth-none"),
    PRE_REGISTRATION.with(12),
    RESOURCE_MISMATCH,
    OFFLINE_ACCESS.with(12),
    NO_OFFLINE_ACCESS,
    scenario("auth/authorization-server-migration", 27)
        .by_way_of(REGISTERED_AND_LET_IN)
        .requiring(&[
            "Client re-registers with the new authorization server",
            "Client does not reuse the previous AS client credentials",
            "Client does not assume credentials are portable across authorization servers",
        ]),
    scenario("auth/iss-supported", 14)
        .by_way_of(REGISTERED_AND_LET_IN)
        .requiring(&["Client accepts matching iss when advertised"]),
    scenario("auth/iss-not-advertised", 14)
        .by_way_of(REGISTERED_AND_LET_IN)
        .requiring(&["Client proceeds when iss absent and not advertised"]),
    scenario("auth/iss-supported-missing", 8)
        .by_way_of(ASKED)
        .requiring(&["Client rejects missing iss when required"])
        .refusing("although that server promises to say so (`iss`); it was not used"),
    scenario("auth/iss-wrong-issuer", 8)
        .by_way_of(ASKED)
        .requiring(&["Client rejects mismatched iss"])
        .refusing("the answer comes from https://evil.example.com, but http://localhost:"),
    scenario("auth/iss-unexpected", 8)
        .by_way_of(ASKED)
        .requiring(&["Client compares unadvertised iss and rejects mismatch"])
        .refusing("the answer comes from https://evil.example.com, but http://localhost:"),
    // The slash at the end of the issuer is all that is wrong with it.
    scenario("auth/iss-normalized", 8)
        .by_way_of(ASKED)
        .requiring(&["Client compares iss without URL normalization"])
        .refusing("/, but http://localhost:"),
    scenario("auth/metadata-issuer-mismatch", 3)
        .by_way_of(FOUND)
        .requiring(&["Client validates metadata issuer against well-known URL"])
        .refusing("says that it is https://attacker.example.com and not http://localhost:"),
];

pub(super) const EXTENSIONS_AT_2026_07_28: &[Scenario] = &[
    CREDENTIALS_JWT.with(7),
    CREDENTIALS_BASIC.with(7),
    ENTERPRISE.with(8),
    DPOP.with(13),
    DPOP_NONCE.with(15),
    WORKLOAD.with(7),
];

/// The stable suite, at no revision in particular.
pub(super) const OF_STABLE: &[Scenario] = &[
    stable_metadata("auth/metadata-default"),
    stable_metadata("auth/metadata-var1"),
    stable_metadata("auth/metadata-var2"),
    stable_metadata("auth/metadata-var3"),
    BASIC_CIMD,
    SCOPE_FROM_CHALLENGE,
    SCOPE_FROM_METADATA,
    SCOPE_OMITTED,
    STEP_UP,
    RETRY_LIMIT,
    method("auth/token-endpoint-auth-basic").with(18),
    method("auth/token-endpoint-auth-post").with(18),
    method("auth/token-endpoint-auth-none").with(18),
    PRE_REGISTRATION,
    ENDPOINT_FALLBACK,
    RESOURCE_MISMATCH,
    OFFLINE_ACCESS,
    NO_OFFLINE_ACCESS,
    CREDENTIALS_JWT,
    CREDENTIALS_BASIC,
    enterprise("auth/cross-app-access-complete-flow"),
];
