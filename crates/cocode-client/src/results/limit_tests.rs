//! What is too large, and what takes its place.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cocode_core::{OutputLimits, OutputSize};
use cocode_wire::RawJson;
use serde_json::{Value, json};

use super::{limit, shorten, shorten_measured};
use crate::features::CallResult;
use crate::results::ResultHandle;

const SMALL: OutputLimits = OutputLimits {
    warn_tokens: 500,
    cap_tokens: 2_000,
};

fn result(value: &Value) -> CallResult {
    CallResult::parse(RawJson::of(value).unwrap())
}

fn text(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

fn image(width: u32, height: u32, padding: usize) -> Value {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes.resize(bytes.len() + padding, 0);
    json!({"type": "image", "mimeType": "image/png", "data": STANDARD.encode(bytes)})
}

fn handle() -> ResultHandle {
    "r0123456789".parse().unwrap()
}

fn value(result: &CallResult) -> Value {
    result.raw.decode().unwrap()
}

fn texts(result: &CallResult) -> Vec<String> {
    let value = value(result);
    let blocks = value["content"].as_array().unwrap();
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    texts.map(str::to_owned).collect()
}

#[test]
fn text_is_judged_by_its_tokens() {
    let of = |length: usize| result(&json!({"content": [text("x".repeat(length))]}));
    for (length, expected) in [
        (2_000, OutputSize::Fits),
        (2_004, OutputSize::Large { tokens: 501 }),
        (8_000, OutputSize::Large { tokens: 2_000 }),
        (8_004, OutputSize::TooLarge { tokens: 2_001 }),
    ] {
        assert_eq!(limit(&of(length), &SMALL), expected, "{length}");
    }
}

#[test]
fn binary_content_costs_its_pixels_or_its_note_and_not_its_base64() {
    let data = STANDARD.encode(vec![0_u8; 300_000]);
    for (block, most) in [
        (image(750, 100, 300_000), 100),
        (
            json!({"type": "audio", "mimeType": "audio/wav", "data": data}),
            20,
        ),
        (
            json!({"type": "resource", "resource": {"uri": "file:///a", "blob": data}}),
            20,
        ),
    ] {
        let result = result(&json!({"content": [block]}));
        assert_eq!(limit(&result, &SMALL), OutputSize::Fits);
        let tight = OutputLimits {
            warn_tokens: 0,
            cap_tokens: 1_000_000,
        };
        let OutputSize::Large { tokens } = limit(&result, &tight) else {
            panic!("it costs nothing");
        };
        assert!(tokens <= most, "{tokens}");
    }
    // Few bytes can be many pixels.
    let huge = result(&json!({"content": [image(5_000, 5_000, 0), image(5_000, 5_000, 0)]}));
    assert_eq!(limit(&huge, &SMALL), OutputSize::TooLarge { tokens: 3_200 });
}

#[test]
fn structured_content_counts_unless_a_text_repeats_it() {
    let structured = json!({"rows": vec!["some row"; 400]});
    let repeated = text(serde_json::to_string_pretty(&structured).unwrap());
    let once = result(&json!({"content": [], "structuredContent": structured}));
    let OutputSize::Large { tokens } = limit(&once, &SMALL) else {
        panic!("{:?}", limit(&once, &SMALL));
    };
    let twice = result(&json!({"content": [repeated], "structuredContent": structured}));
    let wrapped = "a long text\n".repeat(400);
    let wrapped_once = result(&json!({"content": [text(&wrapped)]}));
    let wrapped_twice =
        result(&json!({"content": [text(&wrapped)], "structuredContent": {"result": wrapped}}));
    assert_eq!(
        limit(
            &wrapped_twice,
            &OutputLimits {
                warn_tokens: 100,
                cap_tokens: 200
            }
        ),
        limit(
            &wrapped_once,
            &OutputLimits {
                warn_tokens: 100,
                cap_tokens: 200
            }
        )
    );
    let other = result(&json!({"content": [text("{}")], "structuredContent": structured}));
    let OutputSize::Large { tokens: same } = limit(&twice, &SMALL) else {
        panic!("{:?}", limit(&twice, &SMALL));
    };
    // Indentation is all that the text adds.
    assert!(same < tokens * 2, "{same} {tokens}");
    assert_eq!(
        limit(&other, &SMALL),
        OutputSize::Large { tokens: tokens + 1 }
    );
}

#[test]
fn what_was_measured_before_is_not_measured_again() {
    let small = result(&json!({"content": [text("hello")]}));
    let short = shorten_measured(&small, 12_345, &SMALL, None);
    let texts = texts(&short);
    assert!(texts[1].contains("about 12345 tokens"), "{texts:?}");
    let large = result(&json!({"content": [text("x".repeat(8_004))]}));
    assert_eq!(
        shorten_measured(&large, 2_001, &SMALL, None).raw,
        shorten(&large, &SMALL, None).raw
    );
}

#[test]
fn results_of_no_known_form_count_whole() {
    let long = "x".repeat(20_000);
    for odd in [
        json!({"toolResult": long}),
        json!([long]),
        json!(long),
        json!({"content": {"type": "text", "text": long}}),
        json!({"content": long}),
        json!({"content": [{"type": "novel", "data": long}]}),
    ] {
        let odd = result(&odd);
        let size = limit(&odd, &SMALL);
        assert!(matches!(size, OutputSize::TooLarge { .. }), "{size:?}");
        let short = shorten(&odd, &SMALL, Some(&handle()));
        let size = limit(&short, &SMALL);
        assert!(!matches!(size, OutputSize::TooLarge { .. }), "{size:?}");
        assert!(short.raw.as_bytes().len() < 5_000, "{}", short.raw);
    }
}

#[test]
fn what_fits_is_not_touched() {
    let result = result(&json!({"content": [text("x".repeat(4_000))], "structuredContent": {}}));
    assert_eq!(shorten(&result, &SMALL, None).raw, result.raw);
}

#[test]
fn an_oversized_result_becomes_both_its_ends_and_a_note() {
    let lines: Vec<String> = (0..3_000).map(|line| format!("line {line}\n")).collect();
    let raw = RawJson::parse(format!(
        r#"{{"_meta":{{"big":123456789012345678901234567890}},"content":[{}],"structuredContent":{{"a":1}},"isError":true,"resultType":"complete"}}"#,
        text(lines.concat())
    ))
    .unwrap();
    let bytes = raw.as_bytes().len();
    let result = CallResult::parse(raw);
    let short = shorten(&result, &SMALL, Some(&handle()));
    assert!(short.is_error);
    let whole = value(&short);
    assert_eq!(whole["resultType"], "complete");
    assert_eq!(whole.get("structuredContent"), None);
    let meta = r#""_meta":{"big":123456789012345678901234567890}"#;
    assert!(short.raw.as_str().contains(meta), "{}", short.raw);
    let texts = texts(&short);
    let [preview, note] = texts.as_slice() else {
        panic!("{texts:?}");
    };
    assert!(preview.starts_with("line 0\nline 1\n"), "{preview}");
    assert!(
        preview.ends_with("line 2999\n{\n  \"a\": 1\n}\n"),
        "{preview}"
    );
    assert!(preview.contains(" tokens left out ...]\n"), "{preview}");
    for part in [
        &format!("({bytes} bytes), and the limit is 2000 tokens."),
        "kept as r0123456789.",
        "`cocode mcp result show r0123456789 --page 1`",
        "`cocode mcp result grep r0123456789 PATTERN`",
        "`cocode mcp result jq r0123456789 FILTER`",
        "structured content is left out",
    ] {
        assert!(note.contains(part), "{part} is not in {note}");
    }
}

#[test]
fn without_a_handle_more_is_shown_and_nothing_is_promised() {
    let result = result(&json!({"content": [text("word ".repeat(10_000))]}));
    let with = texts(&shorten(&result, &SMALL, Some(&handle())));
    let without = texts(&shorten(&result, &SMALL, None));
    assert!(without[0].len() > 3 * with[0].len());
    assert!(without[1].contains("The rest is not kept."), "{without:?}");
    assert!(!without[1].contains("mcp result"), "{without:?}");
}

#[test]
fn images_are_kept_while_they_fit_and_named_where_they_do_not() {
    let small = image(750, 600, 10);
    let large = image(5_000, 5_000, 10);
    let long = text("word ".repeat(10_000));
    let result = result(&json!({"content": [large, long, small, small, small]}));
    let short = shorten(&result, &SMALL, Some(&handle()));
    let whole = value(&short);
    let blocks = whole["content"].as_array().unwrap();
    let kinds: Vec<&str> = blocks
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["text", "image", "image", "text"]);
    assert_eq!(blocks[1], small);
    let preview = blocks[0]["text"].as_str().unwrap();
    assert!(
        preview.starts_with("[image image/png, 5000 x 5000 pixels, 34 bytes]\nword "),
        "{preview}"
    );
    let attached = "[image image/png, 750 x 600 pixels, 34 bytes, attached]\n";
    assert_eq!(preview.matches(attached).count(), 2, "{preview}");
    let size = limit(&short, &SMALL);
    assert!(matches!(size, OutputSize::Large { .. }), "{size:?}");
}

#[test]
fn a_shortened_result_is_within_any_cap_that_holds_the_note() {
    let blocks = [
        text("中文\n".repeat(5_000)),
        image(600, 500, 0),
        text("x".repeat(50_000)),
        image(3_000, 3_000, 0),
    ];
    let result = result(&json!({"content": blocks, "structuredContent": {"rows": [1, 2, 3]}}));
    for cap_tokens in [200, 250, 400, 777, 1_000, 5_000, 10_000, 20_000] {
        let limits = OutputLimits::with_cap(cap_tokens);
        for handle in [None, Some(&handle())] {
            let short = shorten(&result, &limits, handle);
            let size = limit(&short, &limits);
            assert!(
                !matches!(size, OutputSize::TooLarge { .. }),
                "{cap_tokens}: {size:?}"
            );
        }
    }
    let nothing = OutputLimits::with_cap(0);
    let only_note = texts(&shorten(&result, &nothing, Some(&handle())));
    assert_eq!(only_note.len(), 1);
}
