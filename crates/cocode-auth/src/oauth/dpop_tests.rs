//! Proofs as a server checks them, and what is remembered of servers.

use cocode_wire::RequestLine;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};
use url::Url;

use super::{Dpop, DpopPeer, MAX_SERVERS};
use crate::oauth::jwt::tests::verified;
use crate::oauth::key::{SigningAlgorithm, SigningKey};
use crate::secret::Secret;

const NOW: u64 = 1_800_000_000;

fn dpop() -> Dpop {
    Dpop::new(SigningKey::generate(SigningAlgorithm::Es256).unwrap())
}

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

/// The header and the claims of a proof, which is checked by the key that it carries.
fn proof(dpop: &Dpop, method: &Method, url: &Url, access: Option<&Secret>) -> (Value, Value) {
    let value = dpop
        .proof(RequestLine { method, url }, access, NOW)
        .unwrap();
    assert!(value.is_sensitive());
    verified(value.to_str().unwrap(), &dpop.key().public_jwk().to_value()).unwrap()
}

fn claims(dpop: &Dpop, at: &str, access: Option<&Secret>) -> Value {
    proof(dpop, &Method::POST, &url(at), access).1
}

fn nonce(value: &str) -> HeaderMap {
    HeaderMap::from_iter([(Dpop::NONCE_HEADER, HeaderValue::from_str(value).unwrap())])
}

#[test]
fn a_proof_names_the_request_and_carries_the_public_key_only() {
    let dpop = dpop();
    let at = url("https://user:word@auth.example:8443/token?code=secret#part");
    let (header, mut claims) = proof(&dpop, &Method::POST, &at, None);
    assert_eq!(
        header,
        json!({"typ": "dpop+jwt", "alg": "ES256", "jwk": dpop.key().public_jwk().to_value()})
    );
    assert_eq!(header["jwk"].get("d"), None);
    let name = claims.as_object_mut().unwrap().remove("jti").unwrap();
    assert!(name.as_str().unwrap().len() >= 16);
    assert_eq!(
        claims,
        json!({"htm": "POST", "htu": "https://auth.example:8443/token", "iat": NOW})
    );
}

#[test]
fn a_proof_for_a_resource_is_bound_to_the_token_of_the_example_in_the_rfc() {
    let token = Secret::new("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU");
    let (_, claims) = proof(
        &dpop(),
        &Method::GET,
        &url("https://resource.example.org/protectedresource"),
        Some(&token),
    );
    assert_eq!(claims["ath"], "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
    assert_eq!(claims["htm"], "GET");
}

#[test]
fn no_two_proofs_have_the_same_name() {
    let dpop = dpop();
    let at = "https://auth.example/token";
    assert_ne!(
        claims(&dpop, at, None)["jti"],
        claims(&dpop, at, None)["jti"]
    );
}

#[test]
fn nonces_are_remembered_for_the_server_and_its_side_of_the_token() {
    let (dpop, token) = (dpop(), Secret::new("token"));
    let (here, there) = ("https://a.example/token", "https://b.example/token");
    let (server, resource) = (DpopPeer::AuthorizationServer, DpopPeer::Resource);
    assert!(dpop.heard(server, &url(here), &nonce("first")));
    assert!(dpop.heard(resource, &url(here), &nonce("other")));
    assert_eq!(claims(&dpop, here, None)["nonce"], "first");
    assert_eq!(
        claims(&dpop, "https://a.example/else", None)["nonce"],
        "first"
    );
    assert_eq!(claims(&dpop, here, Some(&token))["nonce"], "other");
    assert_eq!(claims(&dpop, there, None).get("nonce"), None);
    assert!(dpop.heard(server, &url(here), &nonce("second")));
    assert!(!dpop.heard(server, &url(here), &HeaderMap::new()));
    assert_eq!(claims(&dpop, here, None)["nonce"], "second");
}

#[test]
fn nonces_with_other_characters_are_not_used() {
    let (dpop, at) = (dpop(), url("https://a.example/"));
    for bad in ["", "two words", "quo\"te", "back\\slash", &"n".repeat(1025)] {
        assert!(!dpop.heard(DpopPeer::Resource, &at, &nonce(bad)), "{bad}");
    }
    assert!(dpop.heard(DpopPeer::Resource, &at, &nonce("~ok:+/=!")));
}

#[test]
fn only_so_many_servers_are_remembered() {
    let dpop = dpop();
    let at = |number: usize| url(&format!("https://{number}.example/"));
    let hear = |number| dpop.heard(DpopPeer::AuthorizationServer, &at(number), &nonce("n"));
    for number in 0..MAX_SERVERS {
        assert!(hear(number));
    }
    // The first was heard of again, so it is the second that is forgotten.
    assert!(hear(0));
    assert!(hear(MAX_SERVERS));
    let knows = |number| {
        claims(&dpop, at(number).as_str(), None)
            .get("nonce")
            .is_some()
    };
    assert!(knows(0) && knows(MAX_SERVERS) && !knows(1) && knows(2));
    assert_eq!(dpop.servers().len(), MAX_SERVERS);
}

#[test]
fn a_clock_that_is_off_is_set_by_the_date_of_the_server() {
    let (dpop, at) = (dpop(), url("https://auth.example/token"));
    let peer = DpopPeer::AuthorizationServer;
    let dated = |date| HeaderMap::from_iter([(http::header::DATE, HeaderValue::from_static(date))]);
    let set = |date| dpop.set_clock(peer, &at, &dated(date), NOW);
    assert!(!dpop.set_clock(peer, &at, &HeaderMap::new(), NOW));
    assert!(!set("some day"));
    // Three seconds are no reason.
    assert!(!set("Fri, 15 Jan 2027 08:00:03 GMT"));
    assert_eq!(claims(&dpop, at.as_str(), None)["iat"], NOW);
    assert!(set("Fri, 15 Jan 2027 07:00:00 GMT"));
    assert_eq!(claims(&dpop, at.as_str(), None)["iat"], NOW - 3600);
    assert!(!set("Fri, 15 Jan 2027 07:00:02 GMT"));
    assert_eq!(claims(&dpop, "https://else.example/", None)["iat"], NOW);
}

#[test]
fn neither_key_nor_nonces_are_printed() {
    let dpop = dpop();
    dpop.heard(
        DpopPeer::Resource,
        &url("https://a.example/"),
        &nonce("hidden"),
    );
    let printed = format!("{dpop:?}");
    assert_eq!(printed, "Dpop { key: SigningKey(ES256, …), servers: 1 }");
}
