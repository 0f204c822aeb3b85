//! What counts as trace context, and how it goes through `_meta`.

use cocode_wire::RawJson;
use opentelemetry::trace::{SpanContext, TraceState};

use super::{InvalidTraceContext, TraceContext};

const PLACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn members(context: &TraceContext) -> String {
    String::from_utf8(context.to_meta_members()).unwrap()
}

#[test]
fn a_place_in_a_trace_follows_the_specification() {
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let span = "b7ad6b7169203331";
    let zeros = "0".repeat(32);
    for (traceparent, is_valid) in [
        (PLACE.to_owned(), true),
        (format!(" {PLACE}\t"), true),
        (format!("00-{trace}-{span}-00"), true),
        // Of a later version, the beginning is what counts.
        (format!("01-{trace}-{span}-01"), true),
        (format!("cc-{trace}-{span}-01-what-the-future-brings"), true),
        (format!("cc-{trace}-{span}-01.what"), false),
        (format!("{PLACE}-more"), false),
        (format!("ff-{trace}-{span}-01"), false),
        (format!("00-{zeros}-{span}-01"), false),
        (format!("00-{trace}-0000000000000000-01"), false),
        (format!("00-{}-{span}-01", trace.to_uppercase()), false),
        (format!("00-{trace}-{span}-0g"), false),
        (format!("00-{trace}-{span}"), false),
        (format!("00_{trace}-{span}-01"), false),
        ("é".repeat(28), false),
        (String::new(), false),
    ] {
        let parsed = TraceContext::parse(&traceparent);
        assert_eq!(parsed.is_ok(), is_valid, "{traceparent}");
    }
}

#[test]
fn a_tracestate_follows_the_specification() {
    let many = |count: usize| {
        let members: Vec<String> = (0..count).map(|number| format!("k{number}=v")).collect();
        members.join(",")
    };
    for (tracestate, is_valid) in [
        ("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE".to_owned(), true),
        (" a=1 ,\t, b=2 ".to_owned(), true),
        ("1tenant@system=a b".to_owned(), true),
        (String::new(), true),
        (many(32), true),
        (many(33), false),
        ("a=1,a=2".to_owned(), false),
        ("A=1".to_owned(), false),
        ("a".to_owned(), false),
        ("a=".to_owned(), false),
        ("a=b=c".to_owned(), false),
        ("a=\u{e9}".to_owned(), false),
        (format!("{}=1", "a".repeat(257)), false),
        (format!("a={}", "1".repeat(257)), false),
    ] {
        let context = TraceContext::parse(PLACE).unwrap();
        let given = context.with_tracestate(&tracestate);
        assert_eq!(given.is_ok(), is_valid, "{tracestate}");
    }
}

#[test]
fn baggage_follows_the_specification() {
    for (baggage, is_valid) in [
        ("userId=alice,serverNode=DF%2028,isProduction=false", true),
        ("a = 1 ; p ; q = 2 , b=", true),
        ("", true),
        ("a", false),
        ("a=1,,b=2", false),
        ("a b=1", false),
        ("a=1 2", false),
        ("a=\"1\"", false),
        ("a=1;", false),
        ("a=\u{e9}", false),
    ] {
        let given = TraceContext::of_baggage(baggage);
        assert_eq!(given.is_ok(), is_valid, "{baggage}");
    }
    let large = format!("a={}", "1".repeat(8191));
    let refused = TraceContext::of_baggage(&large);
    assert_eq!(refused, Err(InvalidTraceContext::Baggage));
    let many = vec!["a=1"; 65].join(",");
    let refused = TraceContext::of_baggage(&many);
    assert_eq!(refused, Err(InvalidTraceContext::Baggage));
}

#[test]
fn what_meta_says_comes_out_again() {
    let all = concat!(
        r#""traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","#,
        r#""tracestate":"a=\"\\","baggage":"user=alice""#
    );
    let meta = RawJson::parse(format!(r#"{{"progressToken":1,{all},"x":{{}}}}"#)).unwrap();
    let context = TraceContext::from_meta(&meta).unwrap();
    assert_eq!(context.tracestate(), Some(r#"a="\"#));
    assert_eq!(members(&context), all);
}

#[test]
fn meta_gets_the_context_instead_of_its_own() {
    let context = TraceContext::parse(PLACE).unwrap();
    let added = |meta: &str| {
        let meta = RawJson::parse(meta.to_owned()).unwrap();
        context.added_to(Some(&meta)).map(|meta| meta.to_string())
    };
    let alone = format!(r#"{{"traceparent":"{PLACE}"}}"#);
    assert_eq!(added("{}").as_deref(), Some(alone.as_str()));
    assert_eq!(context.added_to(None).unwrap().as_str(), alone);
    assert_eq!(added("[]"), None);
    let with_others = format!(r#"{{"traceparent":"{PLACE}","a":1.10,"b":[]}}"#);
    assert_eq!(
        added(r#"{"a":1.10,"traceparent":"old","baggage":"a=1","b":[]}"#),
        Some(with_others)
    );
}

#[test]
fn parts_of_meta_that_are_wrong_do_not_spoil_the_others() {
    for (meta, expected) in [
        (r"{}", None),
        (r"[]", None),
        (r#"{"traceparent":1,"tracestate":"a=1"}"#, None),
        (
            r#"{"traceparent":"00-0","tracestate":"a=1","baggage":"a=1"}"#,
            Some(r#""baggage":"a=1""#),
        ),
        (
            r#"{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "tracestate":"A=1","baggage":null}"#,
            Some(r#""traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01""#),
        ),
    ] {
        let meta = RawJson::parse(meta).unwrap();
        let context = TraceContext::from_meta(&meta);
        assert_eq!(context.as_ref().map(members).as_deref(), expected, "{meta}");
    }
}

#[test]
fn a_parent_becomes_a_remote_span_with_its_state() {
    let context = TraceContext::parse(PLACE).unwrap();
    let context = context.with_tracestate("a=1, b=2").unwrap();
    let parent: SpanContext = context.span_context().unwrap();
    assert!(parent.is_remote() && parent.is_sampled());
    let state = TraceState::from_key_value([("a", "1"), ("b", "2")]).unwrap();
    assert_eq!(*parent.trace_state(), state);
    assert_eq!(
        TraceContext::of_span(&parent, None).traceparent(),
        Some(PLACE)
    );
}

#[test]
fn what_may_be_personal_does_not_show() {
    let context = TraceContext::parse(PLACE).unwrap();
    let context = context.with_baggage("user=alice").unwrap();
    let context = context.with_tracestate("a=secret").unwrap();
    let shown = format!("{context:?}");
    assert!(
        shown.contains("0af7651916cd43dd8448eb211c80319c"),
        "{shown}"
    );
    assert!(
        !shown.contains("alice") && !shown.contains("secret"),
        "{shown}"
    );
}
