//! `cocode sessions`: conversations that are kept, shown and removed.

use std::collections::BTreeSet;

use cocode_testkit::{ModelFormat, ModelScript};
use serde_json::json;

use super::{Stage, assert_contains, beginning, calls, says};

fn stage() -> Stage {
    let script = ModelScript::new()
        .turn(calls("c1", "read", &json!({"path": "a.txt"})))
        .turn(says("It says: *apple*."))
        .forever(says("Yes."));
    let stage = Stage::new(ModelFormat::Anthropic, script);
    stage.home.project_file("a.txt", "apple");
    stage
}

#[test]
fn conversations_are_listed_the_last_used_first() {
    let stage = stage();
    let none = stage.home.run(["sessions", "list"]).with_code(0);
    none.complains(&["no conversations are kept"]);
    assert_eq!(none.stdout, "");
    let first = stage.events(&["What is in a.txt?"], 0).id();
    let second = stage.events(&["-C", "sub", "Is it late?"], 0).id();
    stage.events(&["--resume", &first, "Sure?"], 0);
    let listed = stage.home.json(&["sessions", "list"]);
    let listed = listed.as_array().unwrap();
    let ids: Vec<_> = listed
        .iter()
        .map(|one| one["session_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [&first, &second]);
    assert_eq!(listed[0]["title"], "What is in a.txt?");
    assert_eq!(
        (&listed[0]["turns"], &listed[1]["turns"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(listed[0]["owner"], "you");
    assert_eq!(
        (&listed[0]["in_use"], &listed[0]["finished"]),
        (&json!(false), &json!(false))
    );
    let table = stage.home.run(["sessions", "list"]).clean();
    for part in ["ID", "ABOUT", &first, "just now", "Is it late?"] {
        assert_contains(&table, part);
    }
    let one = stage.home.json(&["sessions", "list", "-n", "1"]);
    assert_eq!(one.as_array().unwrap().len(), 1);
    let here = stage.home.json(&["sessions", "list", "--here"]);
    assert_eq!(here.as_array().unwrap().len(), 1);
    assert_eq!(here[0]["session_id"], first.as_str());
}

#[test]
fn a_conversation_is_shown_to_people_and_programs() {
    let stage = stage();
    let id = stage.events(&["What is in a.txt?"], 0).id();
    let text = stage
        .home
        .run(["sessions", "show", beginning(&id, 6)])
        .clean();
    for part in ["What is in a.txt?", "read", "a.txt", "It says: *apple*."] {
        assert_contains(&text, part);
    }
    let shown = stage.shown(&id);
    let events = shown["events"].as_array().unwrap();
    let kinds: Vec<_> = events
        .iter()
        .map(|one| one["event"]["record"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "asked",
            "replied",
            "call_begun",
            "call_ended",
            "replied",
            "ended"
        ]
    );
    let numbers: Vec<_> = events
        .iter()
        .map(|one| one["number"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    assert_eq!(shown["settings"]["sandbox"], "read-only");
    let finished = stage.home.run(["sessions", "show", "zzzz"]).with_code(2);
    finished.complains(&[
        "there is no conversation `zzzz`",
        "code: conversation-failed",
    ]);
}

#[test]
fn conversations_are_removed_by_the_beginning_of_an_id_that_is_long_enough() {
    let stage = stage();
    let ids = [(); 3].map(|()| stage.events(&["Hello?"], 0).id());
    let short = beginning(&ids[0], 3);
    let finished = stage.home.run(["sessions", "rm", short]).with_code(2);
    finished.complains(&["is too short", "code: conversation-failed"]);
    let finished = stage.home.run(["sessions", "show", ""]).with_code(2);
    finished.complains(&["is too short"]);
    let (gone, left) = ids.split_first().unwrap();
    // One that is not there keeps all from being removed.
    let words = ["sessions", "rm", gone, "zzzz"];
    stage.home.run(words).with_code(2);
    let n_kept = || {
        stage
            .home
            .json(&["sessions", "list"])
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(n_kept(), ids.len());
    let removed = stage
        .home
        .run(["sessions", "rm", beginning(gone, 18)])
        .clean();
    assert_eq!(removed, format!("removed {gone}\n"));
    let listed = stage.home.json(&["sessions", "list"]);
    let listed = listed.as_array().unwrap().iter();
    let listed: BTreeSet<_> = listed
        .map(|one| one["session_id"].as_str().unwrap())
        .collect();
    assert_eq!(listed, left.iter().map(String::as_str).collect());
    stage.run(&["--resume", gone, "Still there?"]).with_code(2);
}

#[test]
fn conversations_are_removed_by_their_age() {
    let stage = stage();
    for _ in 0..3 {
        stage.run(&["Hello?"]).with_code(0);
    }
    let removed = stage.home.run(["sessions", "rm", "--older-than-days", "1"]);
    assert_eq!(removed.clean(), "removed 0 conversations\n");
    let removed = stage.home.run(["sessions", "rm", "--older-than-days", "0"]);
    assert_eq!(removed.clean(), "removed 3 conversations\n");
    assert_eq!(stage.home.json(&["sessions", "list"]), json!([]));
    stage.home.run(["sessions", "rm"]).with_code(2);
}
