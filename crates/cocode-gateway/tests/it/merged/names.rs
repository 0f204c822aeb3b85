//! The names that clients see.

use cocode_gateway::{Prefix, ViewOptions};
use cocode_testkit::Script;
use serde_json::json;

use super::house::{House, ask, keys, result, with_tools};

async fn names(scripts: &[(&str, Script)], prefix: Prefix) -> Vec<String> {
    let options = ViewOptions {
        prefix,
        ..ViewOptions::default()
    };
    let house = House::with(scripts, options, |_| {}).await;
    let mut client = house.raw().await;
    let tools = result(&mut client, "tools/list", json!({})).await;
    keys(&tools["tools"], "name")
}

fn two() -> [(&'static str, Script); 2] {
    [
        ("b", with_tools(Script::new(), &["read", "only-b"])),
        (
            "a",
            with_tools(Script::modern(), &["write", "read", "odd.name"]),
        ),
    ]
}

#[tokio::test]
async fn names_say_whose_tools_they_are() {
    let names = names(&two(), Prefix::Always).await;
    assert_eq!(names.len(), 5);
    assert!(names[0].starts_with("mcp__a__odd_name_"), "{names:?}");
    assert_eq!(
        names[1..],
        [
            "mcp__a__read",
            "mcp__a__write",
            "mcp__b__only-b",
            "mcp__b__read"
        ]
    );
}

#[tokio::test]
async fn only_names_in_conflict_say_it_where_that_is_wanted() {
    let names = names(&two(), Prefix::OnConflict).await;
    assert!(names[0].starts_with("mcp__a__odd_name_"), "{names:?}");
    assert_eq!(
        names[1..],
        ["mcp__a__read", "mcp__b__read", "only-b", "write"]
    );
}

#[tokio::test]
async fn bare_names_are_of_the_first_server_and_the_others_are_known_to_be_left_out() {
    let options = ViewOptions {
        prefix: Prefix::Never,
        ..ViewOptions::default()
    };
    let house = House::with(&two(), options, |_| {}).await;
    let mut client = house.raw().await;
    let tools = result(&mut client, "tools/list", json!({})).await;
    assert_eq!(
        keys(&tools["tools"], "name"),
        ["odd.name", "only-b", "read", "write"]
    );
    let names = house.view.tool_names();
    let known: Vec<_> = names.iter().map(|(shown, ..)| &**shown).collect();
    assert_eq!(known, keys(&tools["tools"], "name"));
    let prompts = result(&mut client, "prompts/list", json!({})).await;
    assert_eq!(keys(&prompts["prompts"], "name"), ["greet"]);
    let shadowed = house.view.shadowed();
    let shadowed: Vec<_> = shadowed
        .iter()
        .map(|left| (left.server.as_str(), left.name.as_str(), left.by.as_str()))
        .collect();
    assert_eq!(shadowed, [("b", "read", "a"), ("b", "greet", "a")]);
}

#[tokio::test]
async fn long_names_are_cut_unique_and_lead_to_their_tools() {
    let long = "x".repeat(80);
    let other = format!("{long}y");
    let script = with_tools(Script::new(), &[&long, &other])
        .on("tools/call")
        .echo();
    let house = House::of(&[("a-server-with-quite-a-long-name", script)]).await;
    let mut client = house.raw().await;
    let tools = result(&mut client, "tools/list", json!({})).await;
    let names = keys(&tools["tools"], "name");
    assert_eq!(names.len(), 2);
    let mut called = Vec::new();
    for name in &names {
        assert_eq!(name.len(), 64, "{name}");
        let params = json!({ "name": name, "arguments": {} });
        let echoed = result(&mut client, "tools/call", params).await;
        called.push(echoed["name"].as_str().unwrap().to_owned());
    }
    called.sort_by_key(String::len);
    assert_eq!(called, [long, other]);
}

#[tokio::test]
async fn lists_are_the_same_to_the_byte_whoever_came_first() {
    let scripts = two();
    let mut texts = Vec::new();
    for scripts in [scripts.clone(), [scripts[1].clone(), scripts[0].clone()]] {
        let house = House::of(&scripts).await;
        let mut client = house.raw().await;
        texts.push(ask(&mut client, "tools/list", "{}").await);
    }
    assert_eq!(texts[0], texts[1]);
}
