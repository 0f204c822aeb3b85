//! Names with and without their servers: by example, and by property.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Prefix, Shadowed, ShownNames};
use crate::names::{ServerName, ToolName};
use crate::qualified::MAX_QUALIFIED_NAME_BYTES;

type Pair = (ServerName, ToolName);

fn pair(server: &str, tool: &str) -> Pair {
    (server.parse().unwrap(), ToolName::new(tool))
}

fn shown(prefix: Prefix, pairs: &[Pair]) -> Vec<String> {
    let names = ShownNames::build(prefix, pairs.to_vec());
    names.iter().map(|(shown, ..)| shown.to_string()).collect()
}

#[test]
fn by_default_every_name_says_whose_it_is() {
    let pairs = [pair("b", "read"), pair("a", "read"), pair("a", "write")];
    assert_eq!(
        shown(Prefix::default(), &pairs),
        ["mcp__a__read", "mcp__a__write", "mcp__b__read"]
    );
}

#[test]
fn only_names_in_conflict_say_whose_they_are() {
    let pairs = [pair("b", "read"), pair("a", "read"), pair("a", "write")];
    assert_eq!(
        shown(Prefix::OnConflict, &pairs),
        ["mcp__a__read", "mcp__b__read", "write"]
    );
}

#[test]
fn a_name_that_not_every_model_can_spell_says_whose_it_is() {
    let long = "x".repeat(MAX_QUALIFIED_NAME_BYTES + 1);
    let fits = "x".repeat(MAX_QUALIFIED_NAME_BYTES);
    for (tool, is_bare) in [
        ("read.file", false),
        ("", false),
        (long.as_str(), false),
        (fits.as_str(), true),
        ("read-file_2", true),
    ] {
        let names = shown(Prefix::OnConflict, &[pair("a", tool)]);
        assert_eq!(names == [tool], is_bare, "{names:?}");
        let names = shown(Prefix::Never, &[pair("a", tool)]);
        assert_eq!(names, [tool]);
    }
}

#[test]
fn nobody_takes_the_name_of_another_by_looking_like_it() {
    let pairs = [
        pair("a", "b"),
        pair("c", "b"),
        pair("z", "mcp__a__b"),
        pair("z", "mcp__"),
    ];
    let names = ShownNames::build(Prefix::OnConflict, pairs.to_vec());
    let (server, tool) = names.resolve("mcp__a__b").unwrap();
    assert_eq!((server.as_str(), tool.as_str()), ("a", "b"));
    assert_eq!(names.iter().count(), pairs.len());
}

#[test]
fn without_prefixes_the_first_server_by_name_wins() {
    let pairs = [pair("c", "read"), pair("b", "read"), pair("a", "write")];
    let names = ShownNames::build(Prefix::Never, pairs.to_vec());
    assert_eq!(shown(Prefix::Never, &pairs), ["read", "write"]);
    let (server, _) = names.resolve("read").unwrap();
    assert_eq!(server.as_str(), "b");
    let (server, name) = pair("c", "read");
    let by = "b".parse().unwrap();
    assert_eq!(names.shadowed(), [Shadowed { server, name, by }]);
}

proptest! {
    #[test]
    fn nothing_is_lost_and_every_name_leads_back(
        pairs in vec(("[a-c]{1,2}_?", "(mcp__)?[a-c._]{0,3}"), 0..40),
        prefix in prop_oneof![
            Just(Prefix::Always), Just(Prefix::OnConflict), Just(Prefix::Never)
        ],
    ) {
        let pairs: Vec<Pair> = pairs.iter().map(|(server, tool)| pair(server, tool)).collect();
        let names = ShownNames::build(prefix, pairs.clone());
        let shown: BTreeSet<Pair> = names
            .iter()
            .map(|(_, server, tool)| (server.clone(), tool.clone()))
            .collect();
        let shadowed: BTreeSet<Pair> = names
            .shadowed()
            .iter()
            .map(|shadowed| (shadowed.server.clone(), shadowed.name.clone()))
            .collect();
        let distinct: BTreeSet<Pair> = pairs.iter().cloned().collect();
        prop_assert!(shown.is_disjoint(&shadowed));
        prop_assert_eq!(shown.union(&shadowed).cloned().collect::<BTreeSet<_>>(), distinct);
        prop_assert!(prefix == Prefix::Never || shadowed.is_empty());
        let backwards: Vec<Pair> = pairs.into_iter().rev().collect();
        prop_assert_eq!(&names, &ShownNames::build(prefix, backwards));
        for (shown, server, tool) in names.iter() {
            prop_assert_eq!(names.resolve(shown), Some((server, tool)));
        }
    }
}
