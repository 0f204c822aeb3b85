//! Resources, templates, prompts and completions of many servers.

use cocode_client::ManagerOptions;
use cocode_gateway::ViewOptions;
use cocode_testkit::{Gate, Script};
use serde_json::{Value, json};

use super::house::{House, ask, keys, result};

/// A server with these resources, and templates.
fn with_resources(script: Script, uris: &[&str], templates: &[&str]) -> Script {
    let resources: Vec<_> = uris
        .iter()
        .map(|uri| json!({ "uri": uri, "name": "r" }))
        .collect();
    let templates: Vec<_> = templates
        .iter()
        .map(|template| json!({ "uriTemplate": template, "name": "t" }))
        .collect();
    let whole = |member: &str, items: Vec<Value>| json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private", member: items });
    script
        .on("resources/list")
        .result(whole("resources", resources))
        .on("resources/templates/list")
        .result(whole("resourceTemplates", templates))
}

/// Answers a reading with the parameters that came, as text, and who answers.
fn reading(script: Script, who: &str) -> Script {
    let answer = format!(
        r#"{{"resultType":"complete","ttlMs":5,"cacheScope":"public","contents":[{{"uri":"x://same","text":"{who}"}}],"came":$params}}"#
    );
    script.on("resources/read").result(answer)
}

async fn error(client: &mut crate::support::RawClient, method: &str, params: Value) -> Value {
    let answer = ask(client, method, &params.to_string()).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert!(answer["result"].is_null(), "{answer}");
    answer["error"].clone()
}

#[tokio::test]
async fn resources_keep_their_uris_and_of_two_equal_ones_both_can_be_read() {
    let a = with_resources(reading(Script::new(), "a"), &["x://same", "x://a"], &[]);
    let b = with_resources(reading(Script::modern(), "b"), &["x://b", "x://same"], &[]);
    let house = House::of(&[("b", b), ("a", a)]).await;
    let mut client = house.raw().await;
    let listed = result(&mut client, "resources/list", json!({})).await;
    let uris = keys(&listed["resources"], "uri");
    assert_eq!(uris, ["cocode://b/x://same", "x://a", "x://b", "x://same"]);
    for (uri, who, own) in [
        ("x://same", "a", "x://same"),
        ("x://a", "a", "x://a"),
        ("x://b", "b", "x://b"),
        ("cocode://b/x://same", "b", "x://same"),
        // The form that names its server leads there, shown or not.
        ("cocode://a/x://same", "a", "x://same"),
    ] {
        let read = result(&mut client, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(read["contents"][0]["text"], who, "{uri}");
        assert_eq!(read["came"]["uri"], own);
        // What was asked for is what was read.
        if own == "x://same" {
            assert_eq!(read["contents"][0]["uri"], uri);
        }
    }
}

#[tokio::test]
async fn uri_is_looked_for_only_at_servers_of_the_view() {
    let script = |who| {
        let script = with_resources(reading(Script::new(), who), &["x://same"], &["t://{same}"]);
        let answer = format!(r#"{{"completion":{{"values":["{who}"]}}}}"#);
        script.on("completion/complete").result(answer)
    };
    let scripts = ["a", "b", "c"].map(|who| (who, script(who)));
    let house = House::of(&scripts).await;
    let bobs = house.gateway.view(ViewOptions {
        manager: ManagerOptions::with_environment(std::env::vars_os()),
        principal: Some("bob".into()),
        ..ViewOptions::default()
    });
    let theirs = [(1, "b"), (2, "c")].map(|(number, name)| house.servers[number].spec_as(name));
    bobs.apply(theirs).await;
    for (view, who) in [(&house.view, "a"), (&bobs, "b")] {
        let mut client = house.raw_at(view.all()).await;
        let same = json!({ "uri": "x://same" });
        let read = result(&mut client, "resources/read", same.clone()).await;
        assert_eq!(read["contents"][0]["text"], who);
        result(&mut client, "resources/subscribe", same).await;
        let reference = json!({ "type": "ref/resource", "uri": "t://{same}" });
        let argument = json!({ "name": "same", "value": "" });
        let params = json!({ "ref": reference, "argument": argument });
        let completed = result(&mut client, "completion/complete", params).await;
        assert_eq!(completed["completion"]["values"], json!([who]));
        let uri = json!({ "uri": "cocode://c/x://same" });
        let read = result(&mut client, "resources/read", uri).await;
        assert_eq!(read["contents"][0]["text"], "c");
    }
    // A server that bob may not use is as unknown as one that is none.
    let mut client = house.raw_at(bobs.all()).await;
    for method in ["resources/read", "resources/subscribe"] {
        let mut refusals = Vec::new();
        for server in ["a", "z"] {
            let uri = format!("cocode://{server}/x://other");
            let refused = error(&mut client, method, json!({ "uri": uri })).await;
            refusals.push(refused.to_string().replace(&uri, "URI"));
        }
        assert_eq!(refusals[0], refusals[1]);
    }
}

#[tokio::test]
async fn uri_that_names_a_server_is_never_that_of_another() {
    let listed = ["cocode://b/x://b", "cocode://conversations/1"];
    let a = with_resources(reading(Script::new(), "a"), &listed, &["cocode://b/{+any}"]);
    let b = with_resources(reading(Script::new(), "b"), &["x://b"], &[]);
    let house = House::of(&[("a", a), ("b", b)]).await;
    let mut client = house.raw().await;
    let shown = result(&mut client, "resources/list", json!({})).await;
    let own = "cocode://a/cocode://b/x://b";
    let uris = keys(&shown["resources"], "uri");
    assert_eq!(uris, [own, "cocode://conversations/1", "x://b"]);
    for (uri, who) in [
        ("cocode://b/x://b", "b"),
        ("cocode://b/x://unlisted", "b"),
        (own, "a"),
        ("cocode://conversations/1", "a"),
    ] {
        let read = result(&mut client, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(read["contents"][0]["text"], who, "{uri}");
    }
}

#[tokio::test]
async fn uri_that_names_an_unknown_server_leads_to_no_other() {
    let listed = ["cocode://gone/x://listed", "COCODE://gone/x://listed"];
    let templates = ["cocode://gone/{+any}", "{+any}"];
    let a = with_resources(reading(Script::new(), "a"), &listed, &templates);
    let house = House::of(&[("a", a)]).await;
    let mut client = house.raw().await;
    let shown = result(&mut client, "resources/list", json!({})).await;
    let own = [
        "cocode://a/COCODE://gone/x://listed",
        "cocode://a/cocode://gone/x://listed",
    ];
    assert_eq!(keys(&shown["resources"], "uri"), own);
    for uri in [
        "cocode://gone/x://listed",
        "Cocode://gone/x://else",
        "cocode://%67one/x:y",
    ] {
        let refused = error(&mut client, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(refused["code"], -32002, "{uri}: {refused}");
    }
}

#[tokio::test]
async fn uri_of_two_servers_does_not_depend_on_which_starts_faster() {
    let gate = Gate::new();
    let a = Script::new().on("initialize").hold(&gate).as_usual();
    let a = with_resources(reading(a, "a"), &["x://same"], &[]);
    let b = with_resources(reading(Script::new(), "b"), &["x://same"], &[]);
    let house = House::of(&[("a", a), ("b", b)]).await;
    let mut client = house.raw().await;
    gate.reached().await;
    // This one waits for nobody else.
    let named = json!({ "uri": "cocode://b/x://same" });
    let read = result(&mut client, "resources/read", named).await;
    assert_eq!(read["contents"][0]["text"], "b");
    let same = result(&mut client, "resources/read", json!({ "uri": "x://same" }));
    let (read, ()) = tokio::join!(same, async { gate.open() });
    assert_eq!(read["contents"][0]["text"], "a");
}

#[tokio::test]
async fn what_is_read_comes_back_byte_for_byte() {
    let odd = r#"{ "contents" : [ { "uri":"scripted://hello" , "text":"\u00e9" } ] , "n":1.10}"#;
    let script = Script::new().on("resources/read").result(odd);
    let house = House::of(&[("s", script)]).await;
    let mut client = house.raw().await;
    let answer = ask(
        &mut client,
        "resources/read",
        r#"{"uri":"scripted://hello"}"#,
    )
    .await;
    assert_eq!(
        answer,
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":{odd}}}"#)
    );
}

#[tokio::test]
async fn a_uri_that_nobody_lists_goes_where_a_template_fits_best() {
    let a = with_resources(
        reading(Script::new(), "a"),
        &[],
        &["db://{+any}", "same://{x}"],
    );
    let b = with_resources(
        reading(Script::new(), "b"),
        &[],
        &["db://users/{id}", "same://{x}"],
    );
    let house = House::of(&[("a", a), ("b", b)]).await;
    let mut client = house.raw().await;
    let listed = result(&mut client, "resources/templates/list", json!({})).await;
    assert_eq!(
        keys(&listed["resourceTemplates"], "uriTemplate"),
        [
            "cocode://b/same://{x}",
            "db://users/{id}",
            "db://{+any}",
            "same://{x}"
        ]
    );
    for (uri, who) in [
        ("db://users/7", "b"),
        ("db://groups/7", "a"),
        ("same://1", "a"),
        ("cocode://b/same://1", "b"),
    ] {
        let read = result(&mut client, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(read["contents"][0]["text"], who, "{uri}");
    }
}

#[tokio::test]
async fn a_uri_that_nobody_knows_is_unknown_in_the_way_of_the_era() {
    let house = House::of(&[("a", Script::new()), ("b", Script::new())]).await;
    let uri = json!({ "uri": "x://nowhere" });
    let mut client = house.raw().await;
    let refused = error(&mut client, "resources/read", uri.clone()).await;
    assert_eq!((&refused["code"], &refused["data"]), (&json!(-32002), &uri));
    let mut client = house.stateless();
    let refused = client.modern(1, "resources/read", uri.clone()).await;
    assert_eq!(refused["error"]["code"], -32602);
    assert_eq!(refused["error"]["data"], uri);
}

#[tokio::test]
async fn the_only_server_with_resources_is_asked_for_those_that_it_does_not_list() {
    let bare = Script::new().on("initialize").result(json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "bare", "version": "1" },
    }));
    let house = House::of(&[("a", reading(Script::new(), "a")), ("bare", bare)]).await;
    let mut client = house.raw().await;
    let read = result(
        &mut client,
        "resources/read",
        json!({ "uri": "x://unlisted" }),
    )
    .await;
    assert_eq!(read["contents"][0]["text"], "a");
}

#[tokio::test]
async fn prompts_are_named_like_tools_and_got_by_their_own_names() {
    let script = Script::new().on("prompts/get").echo();
    let house = House::of(&[("a", script.clone()), ("b", script)]).await;
    let mut client = house.raw().await;
    let listed = result(&mut client, "prompts/list", json!({})).await;
    let names = keys(&listed["prompts"], "name");
    assert_eq!(names, ["mcp__a__greet", "mcp__b__greet"]);
    let params = r#"{"name":"mcp__b__greet", "arguments":{"n":"1.10"}}"#;
    let answer = ask(&mut client, "prompts/get", params).await;
    assert!(
        answer.contains(r#"{"name":"greet", "arguments":{"n":"1.10"}}"#),
        "{answer}"
    );
    let refused = error(&mut client, "prompts/get", json!({ "name": "greet" })).await;
    assert_eq!(refused["code"], -32602);
}

#[tokio::test]
async fn completions_come_from_the_server_of_what_is_completed() {
    let completing = |who: &str| {
        let answer = format!(
            r#"{{"resultType":"complete","completion":{{"values":["{who}"]}},"came":$params}}"#
        );
        let script = with_resources(Script::dual(), &[], &["x://{same}"]);
        script.on("completion/complete").result(answer)
    };
    let house = House::of(&[("a", completing("a")), ("b", completing("b"))]).await;
    let mut client = house.raw().await;
    for (reference, who, own) in [
        (
            json!({ "type": "ref/prompt", "name": "mcp__b__greet" }),
            "b",
            json!({ "type": "ref/prompt", "name": "greet" }),
        ),
        (
            json!({ "type": "ref/resource", "uri": "x://{same}" }),
            "a",
            json!({ "type": "ref/resource", "uri": "x://{same}" }),
        ),
        (
            json!({ "type": "ref/resource", "uri": "cocode://b/x://{same}" }),
            "b",
            json!({ "type": "ref/resource", "uri": "x://{same}" }),
        ),
    ] {
        let argument = json!({ "name": "same", "value": "h" });
        let params = json!({ "ref": reference, "argument": argument });
        let completed = result(&mut client, "completion/complete", params).await;
        assert_eq!(completed["completion"]["values"], json!([who]));
        assert_eq!(completed["came"]["ref"], own);
        assert_eq!(completed["came"]["argument"], argument);
    }
}

#[tokio::test]
async fn a_server_that_completes_nothing_has_no_completions() {
    let silent = Script::new().on("initialize").result(json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "prompts": {} },
        "serverInfo": { "name": "silent", "version": "1" },
    }));
    let house = House::of(&[("s", silent)]).await;
    let reference = json!({ "type": "ref/prompt", "name": "mcp__s__greet" });
    let params = json!({ "ref": reference, "argument": { "name": "a", "value": "" } });
    let mut client = house.raw().await;
    let completed = result(&mut client, "completion/complete", params.clone()).await;
    assert_eq!(completed, json!({ "completion": { "values": [] } }));
    let mut client = house.stateless();
    let completed = client.modern(1, "completion/complete", params).await;
    assert_eq!(completed["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_method_that_nobody_has_is_unknown() {
    let house = House::of(&[("s", Script::new())]).await;
    let mut client = house.raw().await;
    for method in ["tasks/list", "tasks/get", "x/y", "server/discover"] {
        let refused = error(&mut client, method, json!({})).await;
        assert_eq!(refused["code"], -32601, "{method}");
    }
}
