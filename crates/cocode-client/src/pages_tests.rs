//! Lists that are put together again from pages that were kept.

use std::time::Duration;

use cocode_wire::RawJson;

use super::{Incomplete, Listing, MAX_LIST_BYTES};
use crate::features::{Prompt, Resource, ResourceTemplate, Tool};

fn pages(texts: &[&str]) -> Vec<RawJson> {
    let parse = |text: &&str| RawJson::parse((*text).to_owned()).unwrap();
    texts.iter().map(parse).collect()
}

fn tools(texts: &[&str]) -> Listing<Tool> {
    Listing::<Tool>::from_pages(pages(texts)).unwrap()
}

#[test]
fn kept_pages_become_the_list_they_were() {
    let kept = pages(&[
        r#"{"tools":[{"name":"a","inputSchema":{}},{"name":"b"}],"nextCursor":"2"}"#,
        r#"{ "tools": [ {"inputSchema": { }, "name":"c", "x":1.0} ] }"#,
    ]);
    let listing = Listing::<Tool>::from_pages(kept.clone()).unwrap();
    let names: Vec<&str> = listing.items.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["a", "c"]);
    assert_eq!(listing.quarantined[0].name.as_deref(), Some("b"));
    assert_eq!(listing.incomplete, None);
    assert_eq!(listing.pages, kept);
    assert_eq!(
        listing.items[1].raw.as_str(),
        r#"{"inputSchema": { }, "name":"c", "x":1.0}"#
    );
}

#[test]
fn every_kind_of_list_can_be_read_again() {
    let resources = pages(&[r#"{"resources":[{"uri":"a:1"}]}"#]);
    let resources = Listing::<Resource>::from_pages(resources).unwrap();
    assert_eq!(resources.items[0].uri, "a:1");
    let templates = pages(&[r#"{"resourceTemplates":[{"uriTemplate":"a:{b}"}]}"#]);
    let templates = Listing::<ResourceTemplate>::from_pages(templates).unwrap();
    assert_eq!(templates.items[0].uri_template, "a:{b}");
    let prompts = pages(&[r#"{"prompts":[{"name":"p"}]}"#]);
    let prompts = Listing::<Prompt>::from_pages(prompts).unwrap();
    assert_eq!(prompts.items[0].name, "p");
}

#[test]
fn pages_of_another_list_are_refused() {
    let kept = pages(&[r#"{"prompts":[]}"#]);
    let error = Listing::<Tool>::from_pages(kept).unwrap_err();
    assert!(error.to_string().contains("tools/list"), "{error}");
}

#[test]
fn a_list_that_was_cut_off_still_says_so() {
    let check = |texts: &[&str], expected| assert_eq!(tools(texts).incomplete, expected);
    check(&[], None);
    check(
        &[r#"{"tools":[],"nextCursor":"2"}"#],
        Some(Incomplete::TooSlow),
    );
    let again = r#"{"tools":[],"nextCursor":"1"}"#;
    check(&[again, again], Some(Incomplete::RepeatedCursor));
}

#[test]
fn a_list_is_as_fresh_as_its_shortest_lived_page() {
    let check = |texts: &[&str], expected| assert_eq!(tools(texts).ttl, expected, "{texts:?}");
    let first = r#"{"tools":[],"ttlMs":300000,"nextCursor":"2"}"#;
    check(&[r#"{"tools":[]}"#], None);
    check(&[r#"{"tools":[],"ttlMs":0}"#], Some(Duration::ZERO));
    check(&[r#"{"tools":[],"ttlMs":-5}"#], Some(Duration::ZERO));
    check(
        &[r#"{"tools":[],"ttlMs":1.5e3}"#],
        Some(Duration::from_millis(1500)),
    );
    check(&[r#"{"tools":[],"ttlMs":"soon"}"#], None);
    check(&[r#"{"tools":[],"ttlMs":null}"#], None);
    check(&[r#"{"tools":[],"ttlMs":1e300}"#], Some(Duration::MAX));
    check(
        &[first, r#"{"tools":[],"ttlMs":1000}"#],
        Some(Duration::from_secs(1)),
    );
    check(
        &[first, r#"{"tools":[],"ttlMs":900000}"#],
        Some(Duration::from_mins(5)),
    );
    check(&[first, r#"{"tools":[]}"#], Some(Duration::from_mins(5)));
}

#[test]
fn one_private_page_makes_a_list_private() {
    let public = r#"{"tools":[],"cacheScope":"public","nextCursor":"2"}"#;
    let private = r#"{"tools":[],"cacheScope":"private","nextCursor":"3"}"#;
    let scope = |texts: &[&str]| tools(texts).cache_scope;
    assert_eq!(scope(&[public, private]).as_deref(), Some("private"));
    assert_eq!(scope(&[private, public]).as_deref(), Some("private"));
    assert_eq!(scope(&[public]).as_deref(), Some("public"));
    assert_eq!(scope(&[r#"{"tools":[]}"#]), None);
}

#[test]
fn page_beyond_the_limit_of_bytes_is_not_kept() {
    let next = r#""nextCursor":"2""#;
    let filler = "x".repeat(MAX_LIST_BYTES / 2);
    let half = format!(r#"{{"tools":[{{"name":"a","inputSchema":{{}}}}],"x":"{filler}",{next}}}"#);
    let last = half.replace(next, r#""y":1"#);
    let cut = tools(&[&half, &last]);
    assert_eq!(cut.incomplete, Some(Incomplete::TooManyBytes));
    assert_eq!((cut.items.len(), cut.pages.len()), (1, 1));
    assert_eq!(cut.incomplete.unwrap().to_string(), "more than 64 MiB");
    assert_eq!(tools(&[&last]).incomplete, None);
}

#[test]
fn items_that_are_nested_too_deeply_are_set_aside() {
    let item = |name: &str, depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"name":"{name}","inputSchema":{{"x":{open}{close}}}}}"#)
    };
    let page = format!(
        r#"{{"tools":[{},{}]}}"#,
        item("flat", 100),
        item("deep", 300_000)
    );
    let listing = tools(&[&page]);
    assert_eq!(listing.items.len(), 1);
    assert_eq!(listing.items[0].name, "flat");
    assert!(listing.quarantined[0].reason.contains("120 levels"));
}
