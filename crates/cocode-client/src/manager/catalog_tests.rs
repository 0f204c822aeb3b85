//! Snapshots: their order, their names, and how they differ.

use std::sync::Arc;
use std::time::SystemTime;

use cocode_core::{ServerName, ToolFilter};
use cocode_wire::RawJson;

use super::{Catalog, CatalogChange, ServerCatalog};
use crate::features::{Prompt, Resource, Tool};
use crate::list_cache::ListKind;
use crate::manager::lists::{Asked, Lists};
use crate::pages::{Listing, MAX_LIST_BYTES};

fn asked() -> Asked {
    Asked {
        connection: Some(1),
        number: 1,
        at: SystemTime::now(),
    }
}

fn tools(names: &[(&str, &str)]) -> Listing<Tool> {
    let tools: Vec<String> = names
        .iter()
        .map(|(name, about)| {
            format!(
                r#"{{"name":"{name}","description":"{about}","inputSchema":{{"type":"object"}}}}"#
            )
        })
        .collect();
    let page = format!(r#"{{"tools":[{}]}}"#, tools.join(","));
    Listing::<Tool>::from_pages(vec![RawJson::parse(page).unwrap()]).unwrap()
}

fn lists(names: &[(&str, &str)]) -> Lists {
    let mut lists = Lists::default();
    lists.tools.update(tools(names), asked());
    lists
}

fn name(name: &str) -> ServerName {
    name.parse().unwrap()
}

fn server(server: &str, offered: bool, lists: &Lists) -> ServerCatalog {
    ServerCatalog::of(&name(server), &ToolFilter::default(), offered, lists)
}

fn names(names: &[cocode_core::QualifiedName]) -> Vec<&str> {
    names
        .iter()
        .map(cocode_core::QualifiedName::as_str)
        .collect()
}

#[test]
fn tools_are_sorted_whatever_the_order_they_came_in() {
    let one = lists(&[("b", ""), ("a", "")]);
    let other = lists(&[("c", "")]);
    let forth = Catalog::new(1, [server("x", true, &one), server("a", true, &other)]);
    let back = Catalog::new(1, [server("a", true, &other), server("x", true, &one)]);
    let listed = |catalog: &Catalog| -> Vec<String> {
        catalog.tools().map(|(name, _)| name.to_string()).collect()
    };
    assert_eq!(listed(&forth), ["mcp__a__c", "mcp__x__a", "mcp__x__b"]);
    assert_eq!(listed(&forth), listed(&back));
}

#[test]
fn a_server_that_is_down_is_not_offered_and_still_found() {
    let catalog = Catalog::new(1, [server("x", false, &lists(&[("a", "")]))]);
    assert_eq!(catalog.tools().count(), 0);
    let found = catalog.resolve("mcp__x__a").unwrap();
    assert_eq!(
        (found.server.as_str(), found.tool.name.as_str()),
        ("x", "a")
    );
}

#[test]
fn filters_take_tools_away() {
    let filter = ToolFilter {
        enabled: Some(vec!["read_*".into()]),
        disabled: vec!["read_secret".into()],
    };
    let lists = lists(&[("read_a", ""), ("read_secret", ""), ("write", "")]);
    let server = ServerCatalog::of(&name("x"), &filter, true, &lists);
    assert_eq!(server.filtered_tools, 2);
    let catalog = Catalog::new(1, [server]);
    let listed: Vec<_> = catalog.tools().map(|(name, _)| name.as_str()).collect();
    assert_eq!(listed, ["mcp__x__read_a"]);
    assert!(catalog.find(&name("x"), "write").is_none());
}

#[test]
fn a_change_names_what_is_new_gone_and_different() {
    let before = lists(&[("same", ""), ("gone", ""), ("other", "old")]);
    let mut after = lists(&[("same", ""), ("new", ""), ("other", "new")]);
    let page = RawJson::parse(r#"{"resources":[{"uri":"a:b","name":"c"}]}"#).unwrap();
    let resources = Listing::<Resource>::from_pages(vec![page]).unwrap();
    after.resources.update(resources, asked());
    let before = Catalog::new(1, [server("x", true, &before)]);
    let after = Catalog::new(2, [server("x", true, &after)]);
    let change = after.change_since(&before);
    assert_eq!(names(&change.added), ["mcp__x__new"]);
    assert_eq!(names(&change.removed), ["mcp__x__gone"]);
    assert_eq!(names(&change.changed), ["mcp__x__other"]);
    assert_eq!(change.resources, [name("x")]);
    assert!(change.prompts.is_empty());
    let none = CatalogChange {
        version: 2,
        ..CatalogChange::default()
    };
    assert_eq!(after.change_since(&after), none);
    assert!(none.is_empty());
}

#[test]
fn what_did_not_change_keeps_what_was_made_of_it() {
    let mut lists = lists(&[("same", ""), ("other", "old")]);
    let before = lists.tools.items().to_vec();
    let listing = tools(&[("other", "new"), ("same", "")]);
    lists.tools.update(listing, asked());
    let after = lists.tools.items();
    assert!(Arc::ptr_eq(&before[1], &after[1]), "same");
    assert!(!Arc::ptr_eq(&before[0], &after[0]), "other");
}

#[test]
fn of_two_tools_with_one_name_the_first_counts() {
    let lists = lists(&[("twice", "first"), ("twice", "second")]);
    let server = server("x", true, &lists);
    assert_eq!(server.tools.len(), 1);
    assert_eq!(server.tools[0].tool.description.as_deref(), Some("first"));
    assert_eq!(server.quarantined.len(), 1);
}

#[test]
fn lists_of_one_server_are_bounded_together() {
    let most_of = "x".repeat(MAX_LIST_BYTES / 4 * 3);
    let mut lists = Lists::default();
    let listing = tools(&[("a", &most_of)]);
    let tools = |lists: &mut Lists, listing| {
        lists.take_over((&name("flood"), ListKind::Tools), listing, asked(), |own| {
            &mut own.tools
        })
    };
    tools(&mut lists, listing.clone()).unwrap();
    let page = format!(r#"{{"prompts":[{{"name":"p","description":"{most_of}"}}]}}"#);
    let prompts = Listing::<Prompt>::from_pages(vec![RawJson::parse(page).unwrap()]).unwrap();
    let whose = (&name("flood"), ListKind::Prompts);
    let refused = lists.take_over(whose, prompts, asked(), |own| &mut own.prompts);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("prompts/list"), "{refused}");
    assert!(refused.contains("server `flood`"), "{refused}");
    assert!(refused.contains("more than 64 MiB"), "{refused}");
    assert!(!lists.is_known(ListKind::Prompts));
    // A list takes the place of the older one.
    tools(&mut lists, listing).unwrap();
}
