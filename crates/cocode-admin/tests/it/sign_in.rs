//! Signing in and out: codes that are good once, guesses, cookies.

use std::time::Duration;

use cocode_admin::{
    AdminOptions, CODE_LIFETIME, MAX_GUESSES, Question, QuestionKind, Refusal, RefusalStatus,
    Reply, SESSION_IDLE,
};
use futures_util::future::join_all;
use serde_json::json;

use crate::client::{Answer, Place};
use crate::house::raw;

async fn try_code(place: &Place, code: &str) -> Answer {
    let body = json!({ "code": code }).to_string();
    place.post("/api/v1/sign-in", &body).send().await
}

#[tokio::test(start_paused = true)]
async fn a_code_lets_one_browser_in_and_no_second() {
    let place = Place::new();
    let code = place.admin.new_code().unwrap();
    let answer = try_code(&place, code.code.expose()).await;
    assert_eq!(answer.status, 200);
    let cookie = answer.header("set-cookie");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "{cookie}");
    let again = try_code(&place, code.code.expose()).await;
    assert_eq!((again.status, &*again.code()), (401, "code-wrong"));
    assert_eq!(again.header("set-cookie"), "");
}

#[tokio::test]
async fn of_many_who_try_the_same_code_at_once_one_gets_in() {
    let place = Place::new();
    let code = place.admin.new_code().unwrap();
    let tries = (0..8).map(|_| try_code(&place, code.code.expose()));
    let answers = join_all(tries).await;
    let n_in = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(n_in, 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_guesses_soon_has_to_wait_and_keeps_nobody_out() {
    let place = Place::new();
    let code = place.admin.new_code().unwrap();
    for number in 0..MAX_GUESSES {
        let answer = try_code(&place, &format!("guess-{number}")).await;
        assert_eq!(answer.status, 401);
    }
    let answer = try_code(&place, "one more").await;
    assert_eq!((answer.status, &*answer.code()), (429, "too-many-codes"));
    let wait: u64 = answer.header("retry-after").parse().unwrap();
    assert_eq!(try_code(&place, code.code.expose()).await.status, 200);
    tokio::time::advance(Duration::from_secs(wait)).await;
    assert_eq!(try_code(&place, "another").await.status, 401);
    let metrics = place.get("/metrics").admin().send().await.text;
    let wrong = MAX_GUESSES + 1;
    let line = format!("cocode_refused_total{{reason=\"authentication\"}} {wrong}\n");
    assert!(metrics.contains(&line), "{metrics}");
    assert!(metrics.contains("cocode_refused_total{reason=\"limit\"} 1\n"));
}

#[tokio::test(start_paused = true)]
async fn a_code_is_too_old_after_ten_minutes_and_a_new_one_can_be_made() {
    let place = Place::new();
    let late = place.admin.new_code().unwrap();
    tokio::time::advance(CODE_LIFETIME).await;
    assert_eq!(try_code(&place, late.code.expose()).await.status, 401);
    let made = place
        .post("/api/v1/sign-in/code", "{}")
        .admin()
        .send()
        .await;
    assert_eq!(made.status, 201);
    let made = made.json();
    let code = made["code"].as_str().unwrap();
    assert_eq!(try_code(&place, code).await.status, 200);
}

#[tokio::test]
async fn no_other_page_signs_anybody_in() {
    let place = Place::new();
    let code = place.admin.new_code().unwrap();
    let body = json!({ "code": code.code.expose() }).to_string();
    let asking = place.post("/api/v1/sign-in", &body);
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "http://evil.example"),
    ] {
        let answer = asking.clone().with(name, value).send().await;
        assert_eq!((answer.status, &*answer.code()), (403, "cross-origin"));
    }
    // The code was not used up by that.
    assert_eq!(
        asking
            .with("sec-fetch-site", "same-origin")
            .send()
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn signing_out_makes_the_cookie_worthless() {
    let place = Place::new();
    let browser = place.sign_in().await;
    let session = place.get("/api/v1/session").page(&browser);
    let told = session.clone().send().await.json();
    assert_eq!(told["name"], "operator");
    assert_eq!(told["isAdmin"], true);
    assert_eq!(told["version"], "1.2.3");
    assert_eq!(told["csrf"], *browser.csrf);
    let out = place
        .post("/api/v1/sign-out", "{}")
        .page(&browser)
        .send()
        .await;
    assert_eq!(out.status, 204);
    let cleared = out.header("set-cookie");
    assert!(cleared.starts_with("cocode_session=;"), "{cleared}");
    assert!(cleared.contains("Max-Age=0"), "{cleared}");
    assert_eq!(session.send().await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_uses_ends() {
    let place = Place::new();
    let browser = place.sign_in().await;
    let status = place.get("/api/v1/status").page(&browser);
    tokio::time::advance(SESSION_IDLE.saturating_sub(Duration::from_secs(1))).await;
    assert_eq!(status.clone().send().await.status, 200);
    tokio::time::advance(SESSION_IDLE).await;
    assert_eq!(status.send().await.status, 401);
}

#[tokio::test]
async fn over_https_the_cookie_never_goes_in_the_clear() {
    let place = Place::with(AdminOptions {
        is_https: true,
        ..AdminOptions::default()
    });
    let code = place.admin.new_code().unwrap();
    let answer = try_code(&place, code.code.expose()).await;
    let cookie = answer.header("set-cookie");
    assert!(cookie.starts_with("__Host-cocode_session="), "{cookie}");
    assert!(cookie.ends_with("; Secure"), "{cookie}");
}

#[tokio::test]
async fn gateways_of_one_host_have_cookies_of_their_own() {
    let (one, other) = (Place::new(), Place::new());
    one.admin.be_at_port(7777);
    other.admin.be_at_port(7778);
    let (browser, elsewhere) = (one.sign_in().await, other.sign_in().await);
    assert!(browser.cookie.starts_with("cocode_session_7777="));
    assert!(elsewhere.cookie.starts_with("cocode_session_7778="));
    // A browser sends both to both.
    let both = format!("{}; {}", browser.cookie, elsewhere.cookie);
    for place in [&one, &other] {
        let asking = place.get("/api/v1/session").with("cookie", &both);
        assert_eq!(asking.send().await.status, 200);
    }
    // And what one gateway has given is nothing to the other, whatever it is called.
    let renamed = elsewhere.cookie.replace("7778", "7777");
    let asking = one.get("/api/v1/session").with("cookie", &renamed);
    assert_eq!(asking.send().await.status, 401);
    let document = crate::document::document(&other).await;
    let scheme = &document["components"]["securitySchemes"]["cookie"];
    assert_eq!(scheme["name"], "cocode_session_7778");
}

#[tokio::test]
async fn behind_a_proxy_pages_of_its_address_are_own_ones_and_the_cookie_is_secure() {
    let place = Place::with(AdminOptions {
        site: Some("https://gate.example/".parse().unwrap()),
        ..AdminOptions::default()
    });
    place.admin.be_at_port(7777);
    let browser = place.sign_in().await;
    assert!(browser.cookie.starts_with("__Host-cocode_session_7777="));
    let stop = place
        .post("/api/v1/stop", "{}")
        .page(&browser)
        .without("sec-fetch-site");
    for (origin, status) in [
        ("http://gate.example", 403),
        ("http://localhost:7777", 403),
        ("https://evil.example", 403),
        ("https://gate.example", 202),
    ] {
        let answer = stop.clone().with("origin", origin).send().await;
        assert_eq!(answer.status, status, "{origin}");
    }
}

#[tokio::test(start_paused = true)]
async fn signing_in_and_out_is_written_down_or_not_done() {
    let place = Place::new();
    assert_eq!(try_code(&place, "guess").await.status, 401);
    assert_eq!(place.house.acts(), ["nobody: sign-in: refused"]);
    let browser = place.sign_in().await;
    assert_eq!(place.house.acts(), ["operator: sign-in: done"]);
    let made = place.post("/api/v1/sign-in/code", "{}").admin();
    assert_eq!(made.clone().send().await.status, 201);
    assert_eq!(place.house.acts(), ["root: sign-in/code: done"]);
    let out = place.post("/api/v1/sign-out", "{}").page(&browser);
    let full = Refusal::new(RefusalStatus::Unavailable, "audit-unavailable", "full");
    place.house.refuse(Some(full));
    assert_eq!(made.send().await.status, 503);
    assert_eq!(out.clone().send().await.status, 503);
    let code = place.admin.new_code().unwrap();
    assert_eq!(try_code(&place, code.code.expose()).await.status, 503);
    place.house.refuse(None);
    assert_eq!(place.house.acts(), [""; 0]);
    assert_eq!(out.send().await.status, 204);
    assert_eq!(place.house.acts(), ["operator: sign-out: done"]);
}

#[tokio::test(start_paused = true)]
async fn who_answers_a_question_is_written_down() {
    let place = Place::new();
    let ask = |tool: Option<&str>| {
        let question = Question {
            server: "files".to_owned(),
            principal: Some("carl".to_owned()),
            tool: tool.map(str::to_owned),
            message: "May it?".to_owned(),
            consent: None,
            kind: QuestionKind::Form(raw("{}")),
        };
        let asked = place.desk.inbox.ask(question, Duration::from_mins(1));
        let id = place.desk.inbox.pending().remove(0).id;
        (asked.unwrap(), format!("/api/v1/elicitations/{id}"))
    };
    let answer = async |path: &str, action: &str| {
        let body = json!({ "action": action }).to_string();
        place.post(path, &body).admin().send().await.status
    };
    let (asked, path) = ask(Some("write"));
    assert_eq!(answer(&path, "accept").await, 200);
    assert_eq!(answer(&path, "accept").await, 409);
    drop(asked);
    let id = path.rsplit('/').next().unwrap();
    let again = format!("root: elicitations/accept {id}: refused");
    assert_eq!(
        place.house.acts(),
        ["root: elicitations/accept files write: done", &*again]
    );
    let (asked, path) = ask(Some("write"));
    let full = Refusal::new(RefusalStatus::Unavailable, "audit-unavailable", "full");
    place.house.refuse(Some(full));
    assert_eq!(answer(&path, "accept").await, 503);
    place.house.refuse(None);
    assert_eq!(answer(&path, "decline").await, 200);
    assert_eq!(asked.reply().await, Reply::Decline);
    assert_eq!(
        place.house.acts(),
        ["root: elicitations/decline files write: done"]
    );
}
