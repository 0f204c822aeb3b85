//! Who comes in with which headers and queries, without any issuer.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue, header};
use tokio::time::sleep;

use super::{Checked, DoorMode, DoorOptions, Doorkeeper};
use crate::principal::{Principal, PrincipalKind};
use crate::refusal::Refusal;
use crate::token::Token;
use crate::token_keeper::TokenKeeper;
use crate::token_store::{MemoryTokenStore, TokenRecord, TokenStore as _};

async fn guarded() -> (Doorkeeper, Arc<MemoryTokenStore>) {
    let store = Arc::new(MemoryTokenStore::new());
    let keeper = TokenKeeper::open(store.clone()).await.unwrap();
    let options = DoorOptions {
        tokens: Some(Arc::new(keeper)),
        oauth: None,
        is_open: false,
    };
    (Doorkeeper::new(options), store)
}

async fn added(store: &MemoryTokenStore, name: &str, expires: Option<SystemTime>) -> Token {
    let token = Token::generate().unwrap();
    let record = TokenRecord::new(name.parse().unwrap(), token.hash());
    store.add(&record.expiring(expires)).await.unwrap();
    token
}

fn with(authorization: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let value = HeaderValue::from_str(authorization).unwrap();
    headers.insert(header::AUTHORIZATION, value);
    headers
}

async fn settled(checked: Checked) -> Result<Principal, Refusal> {
    match checked {
        Checked::Now(result) => result,
        Checked::Later(work) => work.await,
    }
}

async fn refusal(doorkeeper: &Doorkeeper, headers: &HeaderMap, query: Option<&str>) -> Refusal {
    settled(doorkeeper.check(headers, query)).await.unwrap_err()
}

fn told(refusal: &Refusal) -> (u16, &str, String) {
    let challenge = refusal.www_authenticate();
    let challenge = challenge.map_or(String::new(), |value| value.to_str().unwrap().to_owned());
    (refusal.status().as_u16(), refusal.code(), challenge)
}

const BARE: &str = "Bearer realm=\"cocode\"";

#[tokio::test(start_paused = true)]
async fn an_open_door_lets_in_everybody_until_there_is_a_token() {
    let store = Arc::new(MemoryTokenStore::new());
    let keeper = TokenKeeper::open(store.clone()).await.unwrap();
    let doorkeeper = Doorkeeper::new(DoorOptions {
        tokens: Some(Arc::new(keeper)),
        oauth: None,
        is_open: true,
    });
    let nothing = HeaderMap::new();
    let local = settled(doorkeeper.check(&nothing, None)).await;
    assert_eq!(local, Ok(Principal::local()));
    assert_eq!(doorkeeper.mode(), DoorMode::Open);
    let token = added(&store, "alice", None).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(refusal(&doorkeeper, &nothing, None).await.status(), 401);
    assert_eq!(doorkeeper.mode(), DoorMode::Tokens);
    let headers = with(&format!("Bearer {}", token.expose()));
    let alice = settled(doorkeeper.check(&headers, None)).await.unwrap();
    assert_eq!(alice.name.as_str(), "alice");
    store.revoke(&alice.name).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert!(!doorkeeper.is_open());
    assert_eq!(refusal(&doorkeeper, &nothing, None).await.status(), 401);
}

#[tokio::test(start_paused = true)]
async fn a_token_of_the_gateway_makes_a_principal_also_right_after_it_was_added() {
    let (doorkeeper, store) = guarded().await;
    let until = SystemTime::now() + Duration::from_hours(1);
    let token = added(&store, "alice", Some(until)).await;
    for scheme in ["Bearer", "bearer", "BEARER", "Bearer  "] {
        let headers = with(&format!("{scheme} {}", token.expose()));
        let principal = settled(doorkeeper.check(&headers, None)).await.unwrap();
        assert_eq!(principal.name.as_str(), "alice");
        assert_eq!(principal.kind, PrincipalKind::Token);
        assert!(!principal.is_admin);
        assert!(principal.until.unwrap() > SystemTime::now());
        assert!(
            matches!(doorkeeper.check(&headers, None), Checked::Now(Ok(_))),
            "what is known needs no waiting"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_without_a_token_is_told_how_to_come() {
    let (doorkeeper, _store) = guarded().await;
    for headers in [HeaderMap::new(), with("Basic YTpi"), with("Digest x")] {
        let refusal = refusal(&doorkeeper, &headers, None).await;
        assert_eq!(told(&refusal), (401, "unauthorized", BARE.to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_bad_token_is_refused_and_never_repeated() {
    let (doorkeeper, store) = guarded().await;
    let past = SystemTime::now() - Duration::from_secs(5);
    let expired = added(&store, "bob", Some(past)).await;
    let unknown = Token::generate().unwrap();
    let mut mistyped = unknown.expose().to_owned();
    mistyped.pop();
    for (token, why) in [
        (expired.expose(), "expired"),
        (unknown.expose(), "no such token"),
        (mistyped.as_str(), "not copied right"),
        ("aaaa.bbbb.cccc", "not a token of a gateway"),
        ("guessed", "not a token of a gateway"),
    ] {
        let headers = with(&format!("Bearer {token}"));
        let refusal = refusal(&doorkeeper, &headers, None).await;
        let (status, code, challenge) = told(&refusal);
        assert_eq!((status, code), (401, "invalid_token"));
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
        assert!(refusal.message().contains(why), "{}", refusal.message());
        let all = format!("{refusal:?} {:?} {challenge}", refusal.body());
        assert!(!all.contains(token), "{all}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_header_that_means_two_things_is_refused() {
    let (doorkeeper, store) = guarded().await;
    let token = added(&store, "alice", None).await;
    let good = format!("Bearer {}", token.expose());
    let mut twice = with(&good);
    twice.append(header::AUTHORIZATION, HeaderValue::from_static("Bearer x"));
    for headers in [
        twice,
        with("Bearer"),
        with("Bearer "),
        with("Bearer a b"),
        with(&format!("{good}, {good}")),
        with(&format!("{good}\"")),
    ] {
        let refusal = refusal(&doorkeeper, &headers, None).await;
        let (status, code, challenge) = told(&refusal);
        assert_eq!((status, code), (400, "invalid_request"), "{headers:?}");
        assert!(challenge.contains("error=\"invalid_request\""));
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_in_the_address_is_refused_even_with_a_good_one_in_the_header_and_at_an_open_door()
{
    let (doorkeeper, store) = guarded().await;
    let token = added(&store, "alice", None).await;
    let good = with(&format!("Bearer {}", token.expose()));
    let open = Doorkeeper::new(DoorOptions {
        is_open: true,
        ..DoorOptions::default()
    });
    let ours = format!("q={}", token.expose());
    for query in [
        "access_token=x",
        "a=b&token=x",
        "api_key=x&c",
        "Access_Token=x",
        "access%5Ftoken=x",
        "%74oken=x",
        ours.as_str(),
    ] {
        for doorkeeper in [&doorkeeper, &open] {
            let refusal = refusal(doorkeeper, &good, Some(query)).await;
            assert_eq!(
                told(&refusal),
                (400, "token_in_url", String::new()),
                "{query}"
            );
            assert!(refusal.message().contains("logs"));
            assert!(!format!("{refusal:?}").contains(token.expose()));
        }
    }
    for query in ["", "token=", "tokens=x", "q=token", "session=1"] {
        let checked = settled(doorkeeper.check(&good, Some(query))).await;
        assert!(checked.is_ok(), "{query}");
    }
}

#[tokio::test]
async fn a_door_without_any_way_in_lets_in_nobody() {
    let doorkeeper = Doorkeeper::new(DoorOptions::default());
    let token = Token::generate().unwrap();
    let headers = with(&format!("Bearer {}", token.expose()));
    let refusal = refusal(&doorkeeper, &headers, None).await;
    assert_eq!(refusal.status(), 401);
}
