//! Where keys come from, how they change, and what happens while they cannot be had.

use std::time::Duration;

use cocode_access::{IssuerOptions, OAuthOptions, ResourceServer};
use cocode_testkit::Signer;
use cocode_wire::HttpClient;
use serde_json::{Value, json};

use crate::issuer::{Issuer, RESOURCE, comes, door};

const KEYS: &str = cocode_testkit::Issuer::KEYS;
const METADATA: &str = cocode_testkit::Issuer::METADATA;

/// Lets time pass without waiting; between requests only, because the network takes real time.
async fn pass(duration: Duration) {
    tokio::time::pause();
    tokio::time::advance(duration).await;
    tokio::time::resume();
}

const HALF_A_MINUTE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_key_that_is_new_is_fetched_and_forged_names_of_keys_fetch_nothing() {
    let (old, new) = (Signer::rsa("old"), Signer::p256("new"));
    let issuer = Issuer::start(&[&old]);
    let door = issuer.door();
    let before = old.good("RS256", &issuer.claims());
    assert!(comes(&door, &before).await.is_ok());

    issuer.publish_keys(&[&old, &new]);
    let after = new.good("ES256", &issuer.claims());
    let refusal = comes(&door, &after).await.unwrap_err();
    assert_eq!(
        refusal.message(),
        "the token is signed with a key that the issuer does not publish"
    );
    pass(HALF_A_MINUTE).await;
    assert!(comes(&door, &after).await.is_ok());
    assert!(comes(&door, &before).await.is_ok());
    assert_eq!(issuer.asked(KEYS), 2);

    pass(HALF_A_MINUTE).await;
    let forger = Signer::other_rsa("forged");
    for number in 0..50 {
        let header = json!({ "alg": "RS256", "kid": format!("forged-{number}") });
        let token = forger.token(&header, &issuer.claims());
        assert_eq!(comes(&door, &token).await.unwrap_err().status(), 401);
    }
    assert_eq!(issuer.asked(KEYS), 3, "fifty forged names fetch once");
}

#[tokio::test]
async fn a_key_that_is_withdrawn_lets_in_nobody_any_more_also_not_those_who_were_verified() {
    let (old, new) = (Signer::rsa("old"), Signer::p256("new"));
    let issuer = Issuer::start(&[&old]);
    let door = issuer.door();
    let token = old.good("RS256", &issuer.claims());
    assert!(comes(&door, &token).await.is_ok());
    issuer.publish_keys(&[&new]);
    pass(HALF_A_MINUTE).await;
    assert!(comes(&door, &token).await.is_ok(), "nobody has noticed yet");
    assert!(
        comes(&door, &new.good("ES256", &issuer.claims()))
            .await
            .is_ok()
    );
    let refusal = comes(&door, &token).await.unwrap_err();
    assert_eq!(refusal.status(), 401);
}

#[tokio::test]
async fn keys_of_the_same_name_that_change_are_not_mixed_up() {
    let (old, new) = (Signer::rsa("same"), Signer::other_rsa("same"));
    let issuer = Issuer::start(&[&old]);
    let door = issuer.door();
    assert!(
        comes(&door, &old.good("RS256", &issuer.claims()))
            .await
            .is_ok()
    );
    issuer.publish_keys(&[&new]);
    pass(Duration::from_mins(11)).await;
    // Known keys are used while newer ones are fetched.
    let first = comes(&door, &old.good("RS256", &issuer.claims())).await;
    assert!(first.is_ok());
    let token = new.good("RS256", &issuer.claims());
    let mut n_tries = 0;
    while comes(&door, &token).await.is_err() {
        n_tries += 1;
        assert!(n_tries < 1000, "the new key never came");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let refusal = comes(&door, &old.good("RS256", &issuer.claims())).await;
    assert_eq!(
        refusal.unwrap_err().message(),
        "the signature of the token is wrong"
    );
}

#[tokio::test]
async fn while_the_issuer_is_away_known_keys_count_and_others_cannot_be_judged() {
    let (known, unknown) = (Signer::rsa("known"), Signer::p256("unknown"));
    let issuer = Issuer::start(&[&known]);
    let door = issuer.door();
    issuer.set_down(true);
    let token = known.good("RS256", &issuer.claims());
    let refusal = comes(&door, &token).await.unwrap_err();
    assert_eq!(
        (refusal.status().as_u16(), refusal.code()),
        (503, "temporarily_unavailable")
    );
    assert_eq!(refusal.headers()["retry-after"], "5");
    issuer.set_down(false);
    pass(Duration::from_secs(5)).await;
    assert!(comes(&door, &token).await.is_ok());

    issuer.set_down(true);
    pass(Duration::from_mins(15)).await;
    let fresh = known.good("RS256", &issuer.claims());
    assert!(comes(&door, &fresh).await.is_ok());
    pass(HALF_A_MINUTE).await;
    let refusal = comes(&door, &unknown.good("ES256", &issuer.claims())).await;
    assert_eq!(refusal.unwrap_err().status(), 503);
    assert!(comes(&door, &fresh).await.is_ok());
}

#[tokio::test]
async fn many_who_come_first_share_one_fetch() {
    let key = Signer::rsa("a");
    let issuer = Issuer::start(&[&key]);
    let door = issuer.door();
    let tokens: Vec<String> = (0..20)
        .map(|number| {
            let mut claims = issuer.claims();
            claims["sub"] = json!(format!("user-{number}"));
            key.good("RS256", &claims)
        })
        .collect();
    let door = &door;
    let mut waiting: Vec<_> = tokens
        .iter()
        .map(|token| Box::pin(comes(door, token)))
        .collect();
    // All of them are asked once before anything is answered.
    for one in &mut waiting {
        let polled = std::future::poll_fn(|context| {
            std::task::Poll::Ready(one.as_mut().poll(context).is_pending())
        });
        assert!(polled.await);
    }
    for one in waiting {
        assert!(one.await.is_ok());
    }
    assert_eq!(issuer.asked(KEYS), 1);
}

#[tokio::test]
async fn metadata_counts_only_if_it_names_the_very_issuer() {
    let key = Signer::rsa("a");
    let issuer = Issuer::start(&[&key]);
    let keys = format!("{}{KEYS}", issuer.url());
    for other in [
        format!("{}/", issuer.url()),
        "https://evil.example".to_owned(),
        issuer.url().to_uppercase(),
    ] {
        issuer.publish(METADATA, &json!({ "issuer": other, "jwks_uri": keys }));
        let door = issuer.door();
        let refusal = comes(&door, &key.good("RS256", &issuer.claims())).await;
        assert_eq!(refusal.unwrap_err().status(), 503, "{other}");
    }
    assert_eq!(issuer.asked(KEYS), 0);
}

#[tokio::test]
async fn metadata_is_found_in_all_usual_places_also_with_a_path() {
    let key = Signer::rsa("a");
    for (path, place) in [
        ("", "/.well-known/openid-configuration"),
        ("/tenant", "/.well-known/oauth-authorization-server/tenant"),
        ("/tenant", "/tenant/.well-known/openid-configuration"),
        ("/tenant/", "/.well-known/openid-configuration/tenant"),
    ] {
        let issuer = Issuer::empty();
        let name = format!("{}{path}", issuer.url());
        let keys = format!("{}{KEYS}", issuer.url());
        issuer.publish(place, &json!({ "issuer": name, "jwks_uri": keys }));
        issuer.publish_keys(&[&key]);
        let door = door(OAuthOptions::new(RESOURCE.parse().unwrap(), &name));
        let mut claims = issuer.claims();
        claims["iss"] = json!(name);
        let token = key.good("RS256", &claims);
        assert!(comes(&door, &token).await.is_ok(), "{path} {place}");
    }
}

#[tokio::test]
async fn configured_keys_need_no_metadata() {
    let key = Signer::rsa("a");
    let issuer = Issuer::empty();
    issuer.publish_keys(&[&key]);
    let mut options = issuer.options();
    options.issuers[0].jwks_uri = Some(format!("{}{KEYS}", issuer.url()).parse().unwrap());
    let door = door(options);
    let token = key.good("RS256", &issuer.claims());
    assert!(comes(&door, &token).await.is_ok());
    assert_eq!(issuer.asked(METADATA), 0);
}

#[tokio::test]
async fn each_issuer_has_its_own_keys() {
    let (ours, theirs) = (Signer::rsa("same"), Signer::other_rsa("same"));
    let (one, other) = (Issuer::start(&[&ours]), Issuer::start(&[&theirs]));
    let mut options = one.options();
    options.issuers.push(IssuerOptions {
        issuer: other.url().to_owned(),
        jwks_uri: None,
    });
    let door = door(options);
    assert!(
        comes(&door, &ours.good("RS256", &one.claims()))
            .await
            .is_ok()
    );
    assert!(
        comes(&door, &theirs.good("RS256", &other.claims()))
            .await
            .is_ok()
    );
    for token in [
        ours.good("RS256", &other.claims()),
        theirs.good("RS256", &one.claims()),
    ] {
        let refusal = comes(&door, &token).await.unwrap_err();
        assert_eq!(refusal.message(), "the signature of the token is wrong");
    }
}

#[tokio::test]
async fn documents_do_not_lead_to_other_hosts_by_redirect_or_to_private_addresses_by_name() {
    let key = Signer::rsa("a");
    let elsewhere = Issuer::start(&[&key]);
    let there = format!("{}{KEYS}", elsewhere.url());
    let localhost = there.replace("127.0.0.1", "localhost");
    let secure = there.replace("http:", "https:");
    for place in [
        there.as_str(),
        localhost.as_str(),
        secure.as_str(),
        "https://10.0.0.1/keys",
        "https://169.254.169.254/keys",
        "https://[::1]/keys",
        "https://localhost:1/keys",
        "https://user:password@issuer.example/keys",
        "file:///etc/passwd",
        "nothing",
    ] {
        let issuer = Issuer::empty();
        let metadata = json!({ "issuer": issuer.url(), "jwks_uri": place });
        issuer.publish(METADATA, &metadata);
        let door = issuer.door();
        let refusal = comes(&door, &key.good("RS256", &issuer.claims())).await;
        assert_eq!(refusal.unwrap_err().status(), 503, "{place}");
    }
    let issuer = Issuer::start(&[&key]);
    issuer.redirect(KEYS, &there);
    let door = issuer.door();
    let refusal = comes(&door, &key.good("RS256", &issuer.claims())).await;
    assert_eq!(refusal.unwrap_err().status(), 503);
    assert_eq!(elsewhere.asked(KEYS), 0);

    let issuer = Issuer::start(&[&key]);
    let keys = json!({ "keys": [key.jwk()] });
    issuer.redirect(KEYS, "/moved/keys");
    issuer.publish("/moved/keys", &keys);
    let token = key.good("RS256", &issuer.claims());
    assert!(comes(&issuer.door(), &token).await.is_ok());
    let issuer = Issuer::start(&[&key]);
    issuer.redirect(KEYS, KEYS);
    let token = key.good("RS256", &issuer.claims());
    let refusal = comes(&issuer.door(), &token).await.unwrap_err();
    assert_eq!(refusal.status(), 503, "it leads in circles");
    assert_eq!(issuer.asked(KEYS), 4);
}

#[tokio::test]
async fn odd_documents_hold_no_keys_and_odd_keys_are_left_out_alone() {
    let key = Signer::rsa("a");
    let issuer = Issuer::start(&[&key]);
    let token = key.good("RS256", &issuer.claims());
    let many: Vec<Value> = vec![key.jwk(); 2000];
    for body in [
        String::new(),
        "<html>".to_owned(),
        "{}".to_owned(),
        r#"{"keys":{}}"#.to_owned(),
        r#"{"keys":[]}"#.to_owned(),
        json!({ "keys": many }).to_string(),
    ] {
        issuer.answer(KEYS, 200, None, body);
        let refusal = comes(&issuer.door(), &token).await.unwrap_err();
        assert_eq!(refusal.status(), 503);
    }
    issuer.answer(KEYS, 500, None, json!({ "keys": [key.jwk()] }).to_string());
    let refusal = comes(&issuer.door(), &token).await.unwrap_err();
    assert_eq!(refusal.status(), 503);

    let mut encryption = key.jwk();
    encryption["use"] = json!("enc");
    let mut wrapping = key.jwk();
    wrapping["key_ops"] = json!(["wrapKey"]);
    let odd = json!([
        7,
        { "kty": "oct", "k": "AAAA", "kid": "a" },
        { "kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "a" },
        { "kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA", "kid": "a" },
        { "kty": "RSA", "kid": "a" },
        encryption,
        wrapping,
    ]);
    issuer.publish(KEYS, &json!({ "keys": odd }));
    let refusal = comes(&issuer.door(), &token).await.unwrap_err();
    assert_eq!(refusal.status(), 503);
    let mut with_good = odd.as_array().unwrap().clone();
    with_good.push(key.jwk());
    issuer.publish(KEYS, &json!({ "keys": with_good }));
    assert!(comes(&issuer.door(), &token).await.is_ok());
}

#[tokio::test]
async fn a_token_that_names_no_key_is_tried_with_the_few_that_fit() {
    let (one, other) = (Signer::rsa("one"), Signer::other_rsa("other"));
    let issuer = Issuer::start(&[&one, &other]);
    let unnamed = |signer: &Signer| signer.token(&json!({ "alg": "RS256" }), &issuer.claims());
    let door = issuer.door();
    assert!(comes(&door, &unnamed(&one)).await.is_ok());
    assert!(comes(&door, &unnamed(&other)).await.is_ok());
    issuer.publish(KEYS, &json!({ "keys": vec![one.jwk(); 5] }));
    let refusal = comes(&issuer.door(), &unnamed(&one)).await.unwrap_err();
    assert_eq!(
        refusal.message(),
        "the token does not say which key of the issuer it is signed with"
    );
}

#[test]
fn the_description_of_the_resource_says_where_tokens_come_from() {
    let mut options = OAuthOptions::new(RESOURCE.parse().unwrap(), "https://issuer.example/t");
    options.required_scopes = vec!["mcp:use".to_owned()];
    options.admin_scope = Some("mcp:admin".to_owned());
    let server = ResourceServer::new(options, &HttpClient::default()).unwrap();
    let document: Value = serde_json::from_slice(&server.metadata()).unwrap();
    assert_eq!(
        document,
        json!({
            "resource": RESOURCE,
            "authorization_servers": ["https://issuer.example/t"],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["mcp:use", "mcp:admin"],
            "resource_name": "cocode gateway",
        })
    );
    for (path, serves) in [
        ("/.well-known/oauth-protected-resource", true),
        ("/.well-known/oauth-protected-resource/", true),
        ("/.well-known/oauth-protected-resource/mcp", true),
        ("/.well-known/oauth-protected-resource/mcp/files", true),
        ("/.well-known/oauth-protected-resource/mcpx", false),
        ("/.well-known/oauth-protected-resource/other", false),
        ("/.well-known/oauth-protected-resourcex", false),
        ("/mcp", false),
    ] {
        assert_eq!(server.serves_metadata_at(path), serves, "{path}");
    }
    assert_eq!(
        server.metadata_url(),
        "https://gateway.example/.well-known/oauth-protected-resource/mcp"
    );
}
