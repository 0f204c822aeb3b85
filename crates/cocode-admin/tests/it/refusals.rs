//! Every way in which every route refuses: by its own guards, and by what the house says.

use std::time::Duration;

use cocode_admin::model::Authentication;
use cocode_admin::{MAX_BODY_BYTES, MAX_CALL_BYTES, Refusal, RefusalStatus, Who};
use http::Method;

use crate::client::{Answer, Place};
use crate::document::{Operation, check_answer, document, operations};
use crate::examples::{examples, stage};

fn check_refused(
    document: &serde_json::Value,
    operation: &Operation,
    answer: &Answer,
    status: u16,
) {
    assert_eq!(answer.status, status, "{} {answer:?}", operation.id);
    check_answer(document, operation, status, &answer.json());
}

#[tokio::test]
async fn nobody_gets_in_without_showing_who_they_are_and_nothing_is_done() {
    let document = document(&Place::new()).await;
    for operation in operations(&document) {
        let example = &examples()[operation.id.as_str()];
        let (place, path, body) = stage(&operation, example).await;
        let asking = place.ask(&operation.method, &path);
        let asking = if body.is_empty() {
            asking
        } else {
            asking.json(&body)
        };
        if operation.id == "getMetrics" {
            // Open as long as MCP is.
            assert_eq!(asking.clone().send().await.status, 401);
            assert_eq!(asking.clone().client().send().await.status, 403);
            place.house.authenticate(Authentication::Open);
            assert_eq!(asking.send().await.status, 200);
            continue;
        }
        if operation.is_public() {
            assert!(["signIn", "getHealth", "getReadiness"].contains(&&*operation.id));
            assert_eq!(asking.send().await.status, 200, "{}", operation.id);
            continue;
        }
        let answer = asking.clone().send().await;
        check_refused(&document, &operation, &answer, 401);
        assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"cocode\"");
        let forged = asking.clone().with("cookie", "cocode_session=forged");
        assert_eq!(forged.send().await.status, 401, "{}", operation.id);
        let answer = asking.clone().client().send().await;
        match &*operation.id {
            "getSession" => {
                assert_eq!(answer.json()["name"], "ana");
                assert_eq!(answer.json()["isAdmin"], false);
                assert!(answer.json()["csrf"].is_null());
            }
            "signOut" => assert_eq!(answer.status, 204),
            _ => check_refused(&document, &operation, &answer, 403),
        }
        assert_eq!(place.house.deeds(), [""; 0], "{}", operation.id);
        // A page that was led to the user's own way is not.
        let page = asking.clone().by(Who::Local);
        for (name, value) in [
            ("sec-fetch-site", "same-origin"),
            ("origin", "http://localhost:7777"),
        ] {
            let answer = page.clone().with(name, value).send().await;
            check_refused(&document, &operation, &answer, 403);
        }
        assert_eq!(place.house.deeds(), [""; 0], "{}", operation.id);
        // Whoever comes by the user's own way is the user.
        let answer = asking.by(Who::Local).open().await;
        assert_eq!(answer.0.as_u16(), example.status, "{}", operation.id);
    }
}

#[tokio::test]
async fn other_methods_are_answered_with_those_that_there_are() {
    let document = document(&Place::new()).await;
    let place = Place::new();
    let all = operations(&document);
    for operation in &all {
        let own: Vec<_> = all
            .iter()
            .filter(|one| one.path == operation.path)
            .collect();
        for method in ["PUT", "PATCH", "OPTIONS", "TRACE", "POST", "DELETE", "BREW"] {
            let method: Method = method.parse().unwrap();
            if own.iter().any(|one| one.method == method) {
                continue;
            }
            let path = operation
                .path
                .replace("{name}", "files")
                .replace("{id}", "1");
            let answer = place.ask(&method, &path).admin().send().await;
            check_refused(&document, operation, &answer, 405);
            let allowed = answer.header("allow");
            for one in &own {
                assert!(allowed.contains(one.method.as_str()), "{path} {allowed}");
            }
        }
    }
    assert_eq!(place.house.deeds(), [""; 0]);
}

#[tokio::test]
async fn queries_that_are_not_known_are_refused_and_not_repeated() {
    let document = document(&Place::new()).await;
    for operation in operations(&document) {
        let example = &examples()[operation.id.as_str()];
        let (place, path, body) = stage(&operation, example).await;
        let path = format!("{path}?access_token=hunter2");
        let asking = place.ask(&operation.method, &path).admin();
        let asking = if body.is_empty() {
            asking
        } else {
            asking.json(&body)
        };
        let answer = asking.send().await;
        check_refused(&document, &operation, &answer, 400);
        assert!(!answer.text.contains("hunter2"), "{}", operation.id);
        assert_eq!(place.house.deeds(), [""; 0], "{}", operation.id);
    }
}

#[tokio::test]
async fn bodies_that_are_not_what_is_wanted_are_refused_by_every_changing_route() {
    let document = document(&Place::new()).await;
    for operation in operations(&document).iter().filter(|one| one.is_changing()) {
        let example = &examples()[operation.id.as_str()];
        let (place, path, body) = stage(operation, example).await;
        let asking = place.ask(&operation.method, &path).admin();
        let body = if body.is_empty() {
            "{}".to_owned()
        } else {
            body
        };
        let refused = |answer: Answer, status| check_refused(&document, operation, &answer, status);

        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
        ] {
            let typed = asking.clone().json(&body).with("content-type", kind);
            refused(typed.clone().send().await, 415);
            // What forms of other pages can send is refused even if they send nothing.
            refused(typed.body("").send().await, 415);
        }
        refused(asking.clone().body(body.clone()).send().await, 415);
        for broken in ["{", "nonsense", "{} {}", "\u{feff}{}", "{\"a\":\u{1}}"] {
            refused(asking.clone().json(broken).send().await, 400);
        }
        refused(
            asking.clone().json("").body(&b"\"\xff\""[..]).send().await,
            400,
        );
        for unfit in ["[]", "null", "1", "\"text\"", "{\"hunter\":2}"] {
            refused(asking.clone().json(unfit).send().await, 422);
        }
        let more = body
            .replacen('{', "{\"unheardOf\":1,", 1)
            .replace(",}", "}");
        refused(asking.clone().json(&more).send().await, 422);
        let most = if operation.id == "callTool" {
            MAX_CALL_BYTES
        } else {
            MAX_BODY_BYTES
        };
        let large = format!("{{\"x\":\"{}\"}}", "x".repeat(most));
        refused(asking.clone().json(&large).send().await, 413);
        let deep = format!("{{\"x\":{}{}}}", "[".repeat(125), "]".repeat(125));
        let status = asking.clone().json(&deep).send().await.status;
        assert!([400, 422].contains(&status), "{} {status}", operation.id);
        if operation.facts["requestBody"]["required"] == true {
            refused(asking.clone().send().await, 422);
        }
        assert_eq!(place.house.deeds(), [""; 0], "{}", operation.id);
        // And with a type that says how the text is written it is JSON, too.
        let typed = asking
            .json(&body)
            .with("content-type", "Application/JSON; charset=utf-8");
        assert_eq!(
            typed.send().await.status,
            example.status,
            "{}",
            operation.id
        );
    }
}

#[tokio::test]
async fn what_must_hold_between_members_is_checked() {
    let place = Place::new();
    for (path, body) in [
        ("/servers", r#"{"name":"x"}"#),
        ("/servers", r#"{"name":"x","command":"a","url":"http://b"}"#),
        ("/servers", r#"{"name":"x","command":"a","headers":{}}"#),
        ("/servers", r#"{"name":"x","url":"http://b","args":[]}"#),
        ("/servers", r#"{"name":"..","command":"a"}"#),
        ("/servers", r#"{"name":"a\u0007b","command":"a"}"#),
        ("/servers", r#"{"name":"","command":"a"}"#),
        ("/servers", r#"{"name":"x","command":"a","scope":"galaxy"}"#),
        ("/servers", r#"{"name":"x","command":"a","env":{"A":1}}"#),
        ("/servers/search/login/complete", r#"{"code":"c"}"#),
        (
            "/servers/search/login/complete",
            r#"{"redirect":"r","code":"c","state":"s"}"#,
        ),
        ("/servers/files/call", r#"{"tool":"echo","arguments":[]}"#),
        (
            "/servers/files/call",
            r#"{"tool":"echo","timeoutSeconds":0}"#,
        ),
        (
            "/servers/files/call",
            r#"{"tool":"echo","timeoutSeconds":1.5}"#,
        ),
        ("/tokens", r#"{"name":"a b"}"#),
        ("/tokens", r#"{"name":"x","expiresInDays":0}"#),
    ] {
        let asking = place.post(&format!("/api/v1{path}"), body).admin();
        let answer = asking.send().await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (422, "body-unfit"),
            "{body} {answer:?}"
        );
        let hints = &answer.json()["error"]["hints"];
        assert!(!hints.as_array().unwrap().is_empty(), "{body}");
    }
    assert_eq!(place.house.deeds(), [""; 0]);
}

#[tokio::test]
async fn what_a_house_refuses_is_told_as_it_says() {
    let document = document(&Place::new()).await;
    for operation in operations(&document) {
        let example = &examples()[operation.id.as_str()];
        // These do not ask the house.
        let own = [
            "getSession",
            "signIn",
            "makeCode",
            "signOut",
            "listen",
            "getDocument",
            "getHealth",
            "getReadiness",
            "listCalls",
            "getLatencies",
            "listElicitations",
            "answerElicitation",
        ];
        if own.contains(&&*operation.id) {
            continue;
        }
        for status in RefusalStatus::ALL {
            let (place, path, body) = stage(&operation, example).await;
            let refusal = Refusal::new(*status, "because", "it is so")
                .hint("live with it")
                .retry_after(Duration::from_millis(1500));
            place.house.refuse(Some(refusal));
            let asking = place.ask(&operation.method, &path).admin();
            let asking = if body.is_empty() {
                asking
            } else {
                asking.json(&body)
            };
            let answer = asking.send().await;
            let code = status.code().as_u16();
            // What the document does not announce does not happen.
            let expected = if operation.announces(code) { code } else { 503 };
            check_refused(&document, &operation, &answer, expected);
            assert_eq!(answer.code(), "because");
            assert_eq!(answer.header("retry-after"), "2");
        }
    }
}

#[test]
fn a_refusal_before_the_api_is_asked_looks_like_one_of_its_own() {
    let page = Refusal::new(RefusalStatus::SignedOut, "token-unknown", "no such token").page();
    assert_eq!(page.status(), 401);
    assert_eq!(
        page.headers()["www-authenticate"],
        "Bearer realm=\"cocode\""
    );
    assert_eq!(page.headers()["x-content-type-options"], "nosniff");
    let text = page.body().as_whole().unwrap();
    let expected = r#"{"error":{"code":"token-unknown","message":"no such token","hints":[]}}"#;
    assert_eq!(text, expected);
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let place = Place::new();
    let get = |path: &str| place.get(path).admin().send();
    for path in [
        "/api/v1",
        "/api/v1/",
        "/api/v1/nothing",
        "/api/v2/status",
        "/api/v1/servers/",
        "/api/v1/servers//tools",
        "/api/v1/status/",
        "/api/v1/servers/files/tools/x",
        "/api/v1/servers/a/b",
    ] {
        let answer = get(path).await;
        let code = answer.code();
        assert_eq!((answer.status, &*code), (404, "route-unknown"), "{path}");
    }
    let unknown = get("/api/v1/servers/nobody").await;
    assert_eq!((unknown.status, &*unknown.code()), (404, "server-unknown"));
    assert_eq!(get("/api/v1/servers/%ff").await.code(), "path-unreadable");
    let elsewhere = get("/nothing").await;
    assert_eq!(
        (elsewhere.status, elsewhere.kind()),
        (404, "text/plain; charset=utf-8")
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_is_given_up() {
    let place = Place::new();
    let body = r#"{"tool":"never"}"#;
    let answer = place
        .post("/api/v1/servers/files/call", body)
        .admin()
        .send()
        .await;
    assert_eq!((answer.status, &*answer.code()), (503, "too-slow"));
}

#[tokio::test]
async fn only_who_is_known_has_more_than_a_little_taken_in() {
    let place = Place::new();
    let mut none = http::HeaderMap::new();
    let limit = |method: &Method, path: &str, headers: &http::HeaderMap, is_known| {
        place.admin.body_limit(method, path, headers, is_known)
    };
    let call = "/api/v1/servers/files/call";
    for (method, path) in [
        (&Method::POST, call),
        (&Method::POST, "/api/v1/servers"),
        (&Method::DELETE, "/api/v1/servers/files"),
        (&Method::GET, "/api/v1/servers"),
        (&Method::POST, "/nothing"),
        (&Method::POST, "/api/v1/nothing"),
        (&Method::PUT, "/api/v1/servers"),
        (&Method::POST, "/%zz"),
        (&Method::GET, "/healthz"),
    ] {
        assert_eq!(limit(method, path, &none, false), 0, "{method} {path}");
    }
    assert_eq!(
        limit(&Method::POST, "/api/v1/sign-in", &none, false),
        64 * 1024
    );
    assert_eq!(limit(&Method::POST, call, &none, true), MAX_CALL_BYTES);
    assert_eq!(
        limit(&Method::POST, "/api/v1/servers", &none, true),
        MAX_BODY_BYTES
    );
    assert_eq!(limit(&Method::GET, "/api/v1/servers", &none, true), 0);
    none.insert("cookie", "cocode_session=nobodys".parse().unwrap());
    assert_eq!(limit(&Method::POST, call, &none, false), 0);
    let cookie = place.sign_in().await.cookie.parse().unwrap();
    let signed_in = [(http::header::COOKIE, cookie)].into_iter().collect();
    assert_eq!(
        limit(&Method::POST, call, &signed_in, false),
        MAX_CALL_BYTES
    );
}
