//! How lists and content look.

use cocode_client::{Annotations, Content, RawJson, ResourceContents};

use super::{Row, Saver, content, decoded, marks, rows};
use crate::printer::Paint;

fn row(name: &str, text: &str, note: &str) -> Row {
    let [name, text, note] = [name, text, note].map(str::to_owned);
    Row { name, text, note }
}

#[test]
fn lists_are_aligned_and_wrapped() {
    let list = [
        row(
            "echo",
            "Says what it is told, and nothing else at all.",
            "[read-only]",
        ),
        row(
            "a-name-that-is-far-too-long-for-the-column-it-is-in",
            "Text.",
            "",
        ),
        row("bare\u{1b}", "", ""),
    ];
    let plain = Paint { on: false };
    assert_eq!(
        rows(&list, 40, plain),
        "\
echo   Says what it is told, and nothing
       else at all. [read-only]
a-name-that-is-far-too-long-for-the-column-it-is-in  Text.
bare\u{fffd}
"
    );
    let wide = rows(&list, usize::MAX / 4, plain);
    assert!(
        wide.starts_with("echo   Says what it is told, and nothing else at all.  [read-only]\n")
    );
}

#[test]
fn colors_surround_names_and_notes_only_when_on() {
    let list = [row("echo", "Text.", "[x]")];
    let colored = rows(&list, 80, Paint { on: true });
    assert_eq!(
        colored,
        "\u{1b}[1mecho\u{1b}[0m  Text.  \u{1b}[2m[x]\u{1b}[0m\n"
    );
}

#[test]
fn marks_name_the_effects_that_are_claimed() {
    let all = Annotations {
        read_only: Some(false),
        destructive: Some(true),
        idempotent: Some(true),
        open_world: Some(true),
    };
    assert_eq!(marks(all), "[destructive, idempotent, open world]");
    assert_eq!(
        marks(Annotations {
            read_only: Some(true),
            ..all
        }),
        "[read-only, idempotent, open world]"
    );
    assert_eq!(marks(Annotations::default()), "");
}

#[test]
fn every_kind_of_content_has_a_text() {
    let contents = |text: Option<&str>, blob: Option<&str>| {
        Content::Embedded(ResourceContents {
            uri: "a:b".into(),
            mime_type: Some("x/y".into()),
            text: text.map(str::to_owned),
            blob: blob.map(str::to_owned),
        })
    };
    let image = |data: &str| Content::Image {
        data: data.into(),
        mime_type: "image/png".into(),
    };
    let link = |name: &str| Content::Link {
        uri: "file:///a".into(),
        name: name.into(),
        mime_type: None,
    };
    let unknown = Content::Unknown {
        kind: "new".into(),
        raw: RawJson::parse(r#"{"type": "new","n":1.10}"#).unwrap(),
    };
    for (block, expected) in [
        (Content::Text("as it is\u{1b}".into()), "as it is\u{1b}\n"),
        (Content::Text("ended\n".into()), "ended\n"),
        (image("AAAA"), "[image image/png, 3 B]\n"),
        (image("?"), "[image image/png, not valid base64]\n"),
        (link("a"), "file:///a (a)\n"),
        (link("file:///a"), "file:///a\n"),
        (contents(Some("text"), None), "text\n"),
        (contents(None, Some("AAA=")), "[resource a:b x/y, 2 B]\n"),
        (contents(None, None), "[resource a:b, empty]\n"),
        (unknown, "{\"type\": \"new\",\"n\":1.10}\n"),
    ] {
        assert_eq!(content(&block, None).unwrap(), expected);
    }
}

#[test]
fn saved_content_gets_a_new_file_each_time() {
    let directory = std::env::temp_dir().join(format!("cocode-render-{}", std::process::id()));
    let saver = Saver {
        directory: directory.clone(),
        stem: "../odd name".into(),
    };
    let sound = Content::Audio {
        data: "AQID".into(),
        mime_type: "audio/wav; rate=8000".into(),
    };
    for name in ["___odd_name-1.wav", "___odd_name-2.wav"] {
        let path = directory.join(name);
        assert_eq!(
            content(&sound, Some(&saver)).unwrap(),
            format!("{}\n", path.display())
        );
        assert_eq!(std::fs::read(&path).unwrap(), [1, 2, 3]);
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn base64_may_be_sloppy() {
    assert_eq!(decoded("AQ\n ID"), Some(vec![1, 2, 3]));
    assert_eq!(decoded("AQI"), Some(vec![1, 2]));
    assert_eq!(decoded("AQI="), Some(vec![1, 2]));
    assert_eq!(decoded("A!"), None);
}
