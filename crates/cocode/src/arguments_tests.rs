//! What arrives at a tool for what was typed.

use cocode_client::RawJson;

use super::{Gathered, InputSchema, pairs};
use crate::error::CliError;

const SCHEMA: &str = r##"{"type":"object","properties":{
    "text":{"type":"string"},
    "int":{"type":"integer"},
    "num":{"type":"number"},
    "flag":{"type":"boolean"},
    "nothing":{"type":"null"},
    "list":{"type":"array","items":{"type":"string"}},
    "ids":{"type":"array","items":{"type":"integer"}},
    "bare":{"type":"array"},
    "map":{"type":"object"},
    "free":{},
    "yes":true,
    "maybe":{"type":["integer","null"]},
    "either":{"anyOf":[{"type":"integer"},{"type":"string"}]},
    "one":{"oneOf":[{"type":"boolean"},{"type":"array","items":{"type":"number"}}]},
    "optional":{"anyOf":[{"type":"string"},{"type":"null"}]},
    "mode":{"enum":["fast","slow"]},
    "level":{"type":"integer","enum":[1,2,3]},
    "mixed":{"enum":["1",1,true,null,"true"]},
    "fixed":{"const":"always"},
    "ref":{"$ref":"#/$defs/count"},
    "escaped":{"$ref":"#/$defs/a%20b~1c"},
    "loop":{"$ref":"#/$defs/loop"},
    "lost":{"$ref":"#/$defs/missing"},
    "far":{"$ref":"https://example.com/schema"},
    "all":{"allOf":[{"$ref":"#/$defs/count"}],"description":"x"},
    "narrow":{"type":"string","anyOf":[{"minLength":1},{"pattern":"a"}]},
    "a\"b":{},
    "odd":{"type":"quux"}},
    "$defs":{"count":{"type":"integer"},"a b/c":{"type":"boolean"},"loop":{"$ref":"#/$defs/loop"}}}"##;

fn schema(text: &str) -> InputSchema {
    InputSchema::parse(&RawJson::parse(text.to_owned()).unwrap()).unwrap()
}

fn run(
    schema: Option<&InputSchema>,
    object: Option<&str>,
    words: &[&str],
) -> Result<String, CliError> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let stdin = || Ok("{\"from\" : 1.10,\n \"stdin\":1e400}\n".to_owned());
    let arguments = Gathered::read(&words, object, &stdin)?.fit("demo", schema, &|_| {})?;
    Ok(arguments.as_str().to_owned())
}

#[track_caller]
fn fails(schema: Option<&InputSchema>, object: Option<&str>, words: &[&str], parts: &[&str]) {
    let error = run(schema, object, words).expect_err("this does not fit");
    let shown = error.to_lines().join("\n");
    for part in parts {
        assert!(shown.contains(part), "{part:?} is not in:\n{shown}");
    }
    assert_eq!(error.exit as u8, 2);
}

#[test]
fn values_become_what_the_schema_asks_for() {
    let schema = schema(SCHEMA);
    for (word, expected) in [
        ("text=5", r#"{"text":"5"}"#),
        ("text=true", r#"{"text":"true"}"#),
        ("text=", r#"{"text":""}"#),
        ("text=a=b:=c", r#"{"text":"a=b:=c"}"#),
        ("text=say \"hi\"\n", r#"{"text":"say \"hi\"\n"}"#),
        ("text=@@file", r#"{"text":"@file"}"#),
        ("int=5", r#"{"int":5}"#),
        ("int=-0", r#"{"int":-0}"#),
        (
            "int=123456789012345678901234567890",
            r#"{"int":123456789012345678901234567890}"#,
        ),
        ("int=5.0", r#"{"int":5.0}"#),
        ("int=1e3", r#"{"int":1e3}"#),
        ("num=1.10", r#"{"num":1.10}"#),
        ("num=1e400", r#"{"num":1e400}"#),
        ("num=-7", r#"{"num":-7}"#),
        ("flag=true", r#"{"flag":true}"#),
        ("nothing=null", r#"{"nothing":null}"#),
        ("list=[\"a\", 2]", r#"{"list":["a", 2]}"#),
        ("list=a", r#"{"list":["a"]}"#),
        ("list=[a", r#"{"list":["[a"]}"#),
        ("ids=7", r#"{"ids":[7]}"#),
        ("bare=x", r#"{"bare":["x"]}"#),
        ("map={\"b\":1.10, \"a\":2}", r#"{"map":{"b":1.10, "a":2}}"#),
        ("free=5", r#"{"free":"5"}"#),
        ("free=[1]", r#"{"free":"[1]"}"#),
        ("yes=true", r#"{"yes":"true"}"#),
        ("maybe=null", r#"{"maybe":null}"#),
        ("maybe=4", r#"{"maybe":4}"#),
        ("either=4", r#"{"either":4}"#),
        ("either=four", r#"{"either":"four"}"#),
        ("one=false", r#"{"one":false}"#),
        ("one=[1,2]", r#"{"one":[1,2]}"#),
        ("one=3", r#"{"one":[3]}"#),
        ("optional=null", r#"{"optional":null}"#),
        ("optional=x", r#"{"optional":"x"}"#),
        ("mode=fast", r#"{"mode":"fast"}"#),
        ("level=2", r#"{"level":2}"#),
        ("mixed=1", r#"{"mixed":"1"}"#),
        ("mixed=null", r#"{"mixed":null}"#),
        ("mixed=true", r#"{"mixed":"true"}"#),
        ("fixed=always", r#"{"fixed":"always"}"#),
        ("ref=9", r#"{"ref":9}"#),
        ("escaped=true", r#"{"escaped":true}"#),
        ("loop=x", r#"{"loop":"x"}"#),
        ("lost=x", r#"{"lost":"x"}"#),
        ("far=x", r#"{"far":"x"}"#),
        ("all=3", r#"{"all":3}"#),
        ("narrow=5", r#"{"narrow":"5"}"#),
        ("odd=5", r#"{"odd":"5"}"#),
        ("text:=5", r#"{"text":5}"#),
        ("num:=1.10", r#"{"num":1.10}"#),
        ("free:={ \"a\" : 1e400 }", r#"{"free":{ "a" : 1e400 }}"#),
        ("int:=\"not an int\"", r#"{"int":"not an int"}"#),
        ("a\"b=c", r#"{"a\"b":"c"}"#),
    ] {
        assert_eq!(
            run(Some(&schema), None, &[word]).unwrap(),
            expected,
            "{word}"
        );
    }
}

#[test]
fn values_that_do_not_fit_are_refused_by_name_and_type() {
    let schema = schema(SCHEMA);
    for (word, wanted) in [
        ("int=five", "must be integer"),
        ("int=5.5", "must be integer"),
        ("int=05", "must be integer"),
        ("int=+5", "must be integer"),
        ("int= 5", "must be integer"),
        ("int=", "must be integer"),
        ("num=.5", "must be number"),
        ("num=NaN", "must be number"),
        ("flag=yes", "must be boolean"),
        ("nothing=none", "must be null"),
        ("ids=x", "must be array of integer"),
        ("map=[1]", "must be object"),
        ("map={", "must be object"),
        ("maybe=x", "must be integer or null"),
        ("one=x", "must be boolean or array of number"),
        ("mode=medium", "must be `fast` or `slow`"),
        ("level=4", "must be `1`, `2` or `3`"),
        ("ref=x", "must be integer"),
        ("all=x", "must be integer"),
    ] {
        let (key, _) = word.split_once('=').unwrap();
        let name = format!("argument `{key}` of tool `demo`");
        fails(
            Some(&schema),
            None,
            &[word],
            &[&name, wanted, "code: invalid-arguments"],
        );
    }
}

#[test]
fn a_name_that_is_given_several_times_makes_a_list() {
    let schema = schema(SCHEMA);
    let words = ["ids=1", "text=x", "ids=2", "ids:=3.0"];
    assert_eq!(
        run(Some(&schema), None, &words).unwrap(),
        r#"{"ids":[1,2,3.0],"text":"x"}"#
    );
    fails(
        Some(&schema),
        None,
        &["text=a", "text=b"],
        &["`text`", "2 times", "must be string"],
    );
    fails(
        Some(&schema),
        None,
        &["ids=1", "ids=x"],
        &["`ids`", "array of integer"],
    );
    fails(None, None, &["a=1", "a=2"], &["`a`", "2 times"]);
}

#[test]
fn whole_objects_stay_as_they_are_written() {
    let text = "{ \"b\" : 1.10,\n\"a\":1e400, \"b\":2, \"\\u0061\\u00e9\": [1 ,2] }";
    assert_eq!(run(None, Some(text), &[]).unwrap(), text);
    assert_eq!(
        run(None, None, &["-"]).unwrap(),
        "{\"from\" : 1.10,\n \"stdin\":1e400}\n"
    );
    assert_eq!(run(None, None, &[]).unwrap(), "{}");
}

#[test]
fn words_replace_members_in_place_and_touch_no_others() {
    let text = r#"{"z": 1.10, "\u0061": [1 ,2], "z":3, "y":12345678901234567890123}"#;
    assert_eq!(
        run(None, Some(text), &["z=new", "end:= 1e400"]).unwrap(),
        r#"{"z":"new","\u0061":[1 ,2],"y":12345678901234567890123,"end": 1e400}"#
    );
    assert_eq!(
        run(None, None, &["-", "from:=2"]).unwrap(),
        r#"{"from":2,"stdin":1e400}"#
    );
}

#[test]
fn what_is_no_argument_is_refused() {
    fails(
        None,
        None,
        &["word"],
        &["`word` is no argument", "key=value"],
    );
    fails(None, None, &["=x"], &["has no name"]);
    fails(None, None, &[":=1"], &["has no name"]);
    fails(None, None, &["a:={"], &["`a`", "is not JSON"]);
    fails(None, None, &["a:=1 2"], &["`a`", "is not JSON"]);
    fails(
        None,
        Some("[1]"),
        &[],
        &["`--args` does not hold a JSON object"],
    );
    fails(
        None,
        Some("{"),
        &[],
        &["`--args` does not hold a JSON object"],
    );
    fails(None, Some("{}"), &["-"], &["both `--args` and `-`"]);
    fails(None, None, &["-", "-"], &["`-` is given twice"]);
    fails(
        None,
        None,
        &["a=@no/such/file"],
        &["cannot read `no/such/file`"],
    );
}

#[test]
fn missing_and_unknown_arguments_are_told_before_the_call() {
    let closed = schema(
        r#"{"type":"object","additionalProperties":false,"required":["path","mode"],
            "properties":{"path":{"type":"string"},"mode":{"enum":["r","w"]},"limit":{"type":"integer"}}}"#,
    );
    fails(
        Some(&closed),
        None,
        &["limit=3"],
        &[
            "tool `demo` needs `path` and `mode`",
            "path (string, required), mode (`r` or `w`, required), limit (integer)",
        ],
    );
    fails(
        Some(&closed),
        Some(r#"{"path":"x"}"#),
        &[],
        &["needs `mode`"],
    );
    fails(
        Some(&closed),
        None,
        &["limt=3"],
        &["has no argument `limt`", "did you mean `limit`?"],
    );
    fails(
        Some(&closed),
        Some(r#"{"paht":1}"#),
        &[],
        &["has no argument `paht`", "did you mean `path`?"],
    );
    let whole = run(Some(&closed), Some(r#"{"path":"x"}"#), &["mode=r"]);
    assert_eq!(whole.unwrap(), r#"{"path":"x","mode":"r"}"#);
    let open = schema(r#"{"required":["message"],"properties":{"message":{}}}"#);
    fails(
        Some(&open),
        None,
        &["mesage=hi"],
        &["has no argument `mesage`", "did you mean `message`?"],
    );
    fails(
        Some(&open),
        Some(r#"{"mesage":"hi"}"#),
        &[],
        &[
            "needs `message`",
            "did you mean `message` instead of `mesage`?",
        ],
    );
    let none = schema(r#"{"type":"object","additionalProperties":false}"#);
    fails(Some(&none), None, &["a=1"], &["it takes no arguments"]);
}

#[test]
fn schemas_that_leave_room_are_not_narrowed() {
    for text in [
        r#"{"additionalProperties":false,"patternProperties":{"^x-":{}}}"#,
        r#"{"additionalProperties":false,"anyOf":[{"properties":{"x-a":{}}}]}"#,
        r#"{"type":"object"}"#,
        r#"{"additionalProperties":true,"properties":{"a":{}}}"#,
        r#"{"patternProperties":{"^x-":{}},"properties":{"a":{}}}"#,
        r#"{"$ref":"https://example.com/schema","properties":{"a":{}}}"#,
    ] {
        assert_eq!(
            run(Some(&schema(text)), None, &["x-a=1"]).unwrap(),
            r#"{"x-a":"1"}"#,
            "{text}"
        );
    }
    let typed = schema(r#"{"additionalProperties":{"type":"integer"}}"#);
    assert_eq!(run(Some(&typed), None, &["n=1"]).unwrap(), r#"{"n":1}"#);
    fails(Some(&typed), None, &["n=x"], &["must be integer"]);
}

#[test]
fn schemas_may_be_put_together_from_parts() {
    let parts = schema(
        r##"{"$ref":"#/$defs/Main","$defs":{"Main":{"allOf":[
            {"properties":{"a":{"type":"integer"}},"required":["a"]},
            {"properties":{"b":{"type":"boolean"}},"required":["b","a"]}]}}}"##,
    );
    assert_eq!(
        run(Some(&parts), None, &["b=true", "a=1"]).unwrap(),
        r#"{"b":true,"a":1}"#
    );
    fails(Some(&parts), None, &["a=1"], &["needs `b`"]);
}

#[test]
fn properties_keep_the_order_of_the_server() {
    let schema = schema(SCHEMA);
    let names: Vec<&str> = schema
        .properties()
        .iter()
        .map(|property| property.name)
        .take(4)
        .collect();
    assert_eq!(names, ["text", "int", "num", "flag"]);
}

#[test]
fn files_are_texts_where_a_text_will_do() {
    let directory = std::env::temp_dir().join(format!("cocode-arguments-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("value.txt");
    std::fs::write(&path, "12\n").unwrap();
    let schema = schema(SCHEMA);
    let path = path.display();
    for (word, expected) in [
        (format!("text=@{path}"), r#"{"text":"12\n"}"#),
        (format!("either=@{path}"), r#"{"either":"12\n"}"#),
        (format!("int=@{path}"), r#"{"int":12}"#),
        (format!("ids=@{path}"), r#"{"ids":[12]}"#),
        (format!("text:=@{path}"), "{\"text\":12\n}"),
    ] {
        assert_eq!(
            run(Some(&schema), None, &[&word]).unwrap(),
            expected,
            "{word}"
        );
    }
    fails(
        Some(&schema),
        None,
        &[&format!("flag=@{path}")],
        &["must be boolean"],
    );
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn pairs_are_texts() {
    let words = ["a=1".to_owned(), "b:=[1, 2]".to_owned()];
    let expected =
        [("a", "1"), ("b", "[1, 2]")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(pairs(&words).unwrap(), expected.into());
    assert!(pairs(&["a=1".to_owned(), "a=2".to_owned()]).is_err());
    assert!(pairs(&["-".to_owned()]).is_err());
}
