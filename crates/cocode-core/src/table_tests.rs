//! Names over whole catalogs: by example, by property, and with hashes that collide.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::qualified::MAX_QUALIFIED_NAME_BYTES;

type Pair = (ServerName, ToolName);

fn pair(server: &str, tool: &str) -> Pair {
    (server.parse().unwrap(), ToolName::new(tool))
}

fn name_in<'table>(table: &'table NameTable, (server, tool): &Pair) -> &'table str {
    table.name_of(server, tool).unwrap().as_str()
}

fn distinct(pairs: &[Pair]) -> usize {
    pairs.iter().collect::<BTreeSet<_>>().len()
}

#[test]
fn names_that_are_equal_once_sanitized_stay_apart() {
    let pairs = [
        pair("s", "a.b"),
        pair("s", "a/b"),
        pair("s", "a_b"),
        pair("s.", "b"),
        pair("s/", "b"),
    ];
    let table = NameTable::build(pairs.clone());
    let names: BTreeSet<_> = pairs.iter().map(|pair| name_in(&table, pair)).collect();
    assert_eq!(names.len(), pairs.len(), "{names:?}");
    assert!(names.contains("mcp__s__a_b"), "{names:?}");
}

#[test]
fn separators_inside_names_do_not_confuse() {
    let pairs = [
        pair("a", "b__c"),
        pair("a__b", "c"),
        pair("a", "_b"),
        pair("a_", "b"),
    ];
    let table = NameTable::build(pairs.clone());
    for entry in &pairs {
        let (server, tool) = table.resolve(name_in(&table, entry)).unwrap();
        assert_eq!((server, tool), (&entry.0, &entry.1));
    }
    assert_eq!(name_in(&table, &pairs[0]), "mcp__a__b__c");
}

#[test]
fn the_same_tool_twice_is_one_entry() {
    let table = NameTable::build([pair("s", "t"), pair("s", "t")]);
    assert_eq!(table.len(), 1);
    assert_eq!(table.iter().count(), 1);
}

#[test]
fn a_name_never_given_out_resolves_to_nothing() {
    let table = NameTable::build([pair("s", "t")]);
    assert_eq!(table.resolve("mcp__s__u"), None);
    assert_eq!(
        table.name_of(&"s".parse().unwrap(), &ToolName::new("u")),
        None
    );
    assert!(NameTable::build([]).is_empty());
}

/// Written down once: a change here would rename tools in stored permissions and conversations.
#[test]
fn hashed_names_are_the_same_on_every_run() {
    let pairs = [
        pair("my server", "read file"),
        pair("s", ""),
        pair("日本", "語"),
    ];
    let table = NameTable::build(pairs.clone());
    let names: Vec<_> = pairs.iter().map(|pair| name_in(&table, pair)).collect();
    assert_eq!(
        names,
        [
            "mcp__my_server__read_file_1fad3a1e43",
            "mcp__s___fea164b2fa",
            "mcp________6824ab4e32"
        ]
    );
}

#[test]
fn colliding_hashes_take_the_next_salt_in_sorted_order() {
    let pairs = [pair("s", "a/b"), pair("s", "a b"), pair("s", "a.b")];
    let expected = [
        (pair("s", "a b"), "mcp__s__a_b_0000000000"),
        (pair("s", "a.b"), "mcp__s__a_b_0000000001"),
        (pair("s", "a/b"), "mcp__s__a_b_0000000002"),
    ];
    for rotation in 0..pairs.len() {
        let mut pairs = pairs.clone();
        pairs.rotate_left(rotation);
        let table = NameTable::build_with(pairs, |_, _, salt| salt);
        for (pair, name) in &expected {
            assert_eq!(name_in(&table, pair), *name);
            assert_eq!(table.resolve(name), Some((&pair.0, &pair.1)));
        }
    }
}

#[test]
fn a_collision_leaves_every_other_tool_alone() {
    let bystander = pair("s", "a_b_0000000001");
    let table = NameTable::build_with(
        [
            pair("s", "a b"),
            pair("s", "a.b"),
            pair("t", "plain"),
            bystander.clone(),
        ],
        |_, tool, salt| {
            if tool.as_str().starts_with("a_") {
                77 + salt
            } else {
                salt
            }
        },
    );
    assert_eq!(name_in(&table, &pair("t", "plain")), "mcp__t__plain");
    assert_eq!(
        name_in(&table, &bystander),
        "mcp__s__a_b_0000000001_000000004d"
    );
    assert_eq!(table.len(), 4);
}

/// Pieces that are likely to collide with each other or with the format itself.
fn hostile_piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ab_.-]{0,3}",
        1 => Just("__".to_owned()),
        1 => Just("mcp__".to_owned()),
        1 => "_[0-9a-f]{10}",
        1 => "[0-9a-f]{10}",
        1 => "[é日本 /:]{1,2}",
        1 => "[ab]{40,70}",
        1 => ".{0,8}",
    ]
}

fn hostile_text() -> impl Strategy<Value = String> {
    vec(hostile_piece(), 0..4).prop_map(|pieces| pieces.concat())
}

/// Small alphabets on purpose: random long names would never meet.
fn pairs() -> impl Strategy<Value = Vec<Pair>> {
    let server = hostile_text().prop_filter_map("not a server name", |text| text.parse().ok());
    let server = prop_oneof![server, "[ab_]{1,3}".prop_map(|text| text.parse().unwrap())];
    let tool = prop_oneof![hostile_text(), "[ab_]{0,3}"];
    vec((server, tool.prop_map(ToolName::from)), 0..40)
}

/// The pairs, and tools named exactly as the names that the first table gives out.
fn pairs_with_mimics() -> impl Strategy<Value = Vec<Pair>> {
    pairs().prop_map(|mut pairs| {
        let table = NameTable::build(pairs.clone());
        let mimics: Vec<_> = table
            .iter()
            .filter_map(|(server, _, name)| {
                let prefix = format!("mcp__{server}__");
                let tool = name.as_str().strip_prefix(prefix.as_str())?;
                Some((server.clone(), ToolName::new(tool)))
            })
            .collect();
        pairs.extend(mimics);
        pairs
    })
}

/// A hash that collides all the time, for the properties that must hold even then.
fn weak_hash(_: &ServerName, tool: &ToolName, salt: u64) -> u64 {
    (tool.as_str().len() as u64 + salt) % 1_000
}

proptest! {
    #[test]
    fn every_name_is_valid_unique_and_reversible(pairs in pairs_with_mimics()) {
        for hash in [qualified::sha256 as PairHash, weak_hash] {
            let table = NameTable::build_with(pairs.clone(), hash);
            prop_assert_eq!(table.len(), distinct(&pairs));
            for (server, tool) in &pairs {
                let name = table.name_of(server, tool).unwrap();
                prop_assert!(name.as_str().len() <= MAX_QUALIFIED_NAME_BYTES);
                prop_assert!(name.as_str().starts_with("mcp__"));
                let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
                prop_assert!(name.as_str().bytes().all(allowed), "{}", name);
                prop_assert_eq!(table.resolve(name.as_str()), Some((server, tool)));
            }
        }
    }

    #[test]
    fn the_order_of_the_pairs_does_not_matter(
        (pairs, shuffled) in pairs_with_mimics()
            .prop_flat_map(|pairs| (Just(pairs.clone()), Just(pairs).prop_shuffle()))
    ) {
        for hash in [qualified::sha256 as PairHash, weak_hash] {
            let in_order = NameTable::build_with(pairs.clone(), hash);
            prop_assert_eq!(in_order, NameTable::build_with(shuffled.clone(), hash));
        }
    }

    #[test]
    fn other_tools_do_not_rename_a_tool(pairs in pairs_with_mimics(), kept in any::<Index>()) {
        prop_assume!(!pairs.is_empty());
        let kept = kept.get(&pairs);
        let alone = NameTable::build([kept.clone()]);
        let together = NameTable::build(pairs.clone());
        prop_assert_eq!(name_in(&alone, kept), name_in(&together, kept));
    }

    #[test]
    fn any_text_can_be_a_tool(server in "\\PC{1,30}", tools in vec(any::<String>(), 1..10)) {
        let server: ServerName = server.parse().unwrap();
        let pairs: Vec<Pair> =
            tools.into_iter().map(|tool| (server.clone(), ToolName::new(tool))).collect();
        let table = NameTable::build(pairs.clone());
        prop_assert_eq!(table.len(), distinct(&pairs));
    }
}
