//! What all interfaces have in common: text, thoughts, calls, and the reasons to stop.

use cocode_agent::{Arguments, Block, Delta, Message, Stop, ToolCall, Usage};
use cocode_testkit::{ModelScript, ModelTurn};
use serde_json::json;

use super::support::{FORMATS, Peer, after, call, image, result, user};

#[tokio::test]
async fn text_is_told_piece_by_piece_and_whole_at_the_end() {
    for format in FORMATS {
        let turn = ModelTurn::new()
            .ping()
            .texts(&["Hel", "lo ", "wörld"])
            .usage(20, 7, 100, 0);
        let peer = Peer::saying(format, turn);
        let (outcome, deltas) = peer.ask(&[user("hi")]).await;
        peer.server.assert_no_violations();
        let reply = outcome.unwrap();
        assert_eq!(reply.content, [Block::text("Hello wörld")], "{format:?}");
        assert_eq!(reply.stop, Stop::Done);
        assert_eq!(reply.model.as_deref(), Some("some-model"));
        let usage = Usage {
            input: 20,
            output: 7,
            cache_read: 100,
            cache_write: 0,
        };
        assert_eq!(reply.usage, usage, "{format:?}");
        let text = |piece: &str| Delta::Text(piece.into());
        assert_eq!(
            deltas,
            [text("Hel"), text("lo "), text("wörld")],
            "{format:?}"
        );
    }
}

#[tokio::test]
async fn several_calls_come_with_their_arguments_and_are_announced() {
    for format in FORMATS {
        let turn = ModelTurn::new()
            .text("Both.")
            .call("call_1", "add", &json!({"a": 1, "b": 2}))
            .call("call_2", "add", &json!({"a": "three and more", "b": 4}))
            .call("call_3", "now", &json!({}));
        let peer = Peer::saying(format, turn).with_tool();
        let (outcome, deltas) = peer.ask(&[user("hi")]).await;
        peer.server.assert_no_violations();
        let reply = outcome.unwrap();
        let now = ToolCall {
            id: "call_3".into(),
            name: "now".into(),
            arguments: Arguments::Json(json!({})),
        };
        let expected = [
            Block::text("Both."),
            call("call_1", json!({"a": 1, "b": 2})),
            call("call_2", json!({"a": "three and more", "b": 4})),
            Block::ToolCall(now),
        ];
        assert_eq!(reply.content, expected, "{format:?}");
        assert_eq!(reply.stop, Stop::ToolCalls);
        let begins = |name: &str| Delta::ToolCall { name: name.into() };
        let expected = [
            Delta::Text("Both.".into()),
            begins("add"),
            begins("add"),
            begins("now"),
        ];
        assert_eq!(deltas, expected, "{format:?}");
    }
}

#[tokio::test]
async fn results_of_several_calls_are_taken_by_the_next_request() {
    for format in FORMATS {
        let calls = ModelTurn::new()
            .call("call_1", "add", &json!({"a": 1, "b": 2}))
            .call("call_2", "add", &json!({"a": 3, "b": 4}));
        let script = ModelScript::new()
            .turn(calls)
            .turn(ModelTurn::new().text("3 and 7"));
        let peer = Peer::start(format, script).with_tool();
        let first = peer.reply(&[user("add")]).await;
        let results = vec![
            result("call_1", vec![Block::text("3")]),
            result("call_2", vec![Block::text("7"), image()]),
            Block::text("Go on."),
        ];
        let messages = [
            user("add"),
            Message::assistant(first.content),
            Message::user(results),
        ];
        let second = peer.reply(&messages).await;
        assert_eq!(second.content, [Block::text("3 and 7")], "{format:?}");
    }
}

#[tokio::test]
async fn malformed_arguments_are_kept_and_given_back_in_a_form_that_is_taken() {
    for format in FORMATS {
        let broken = ModelTurn::new().malformed_call("call_1", "add", "{\"a\": 1,");
        let script = ModelScript::new()
            .turn(broken)
            .turn(ModelTurn::new().text("sorry"));
        let peer = Peer::start(format, script).with_tool();
        let first = peer.reply(&[user("add")]).await;
        let malformed = ToolCall {
            id: "call_1".into(),
            name: "add".into(),
            arguments: Arguments::Malformed("{\"a\": 1,".into()),
        };
        assert_eq!(first.content, [Block::ToolCall(malformed)], "{format:?}");
        let results = vec![result("call_1", vec![Block::text("That was no JSON.")])];
        let messages = [
            user("add"),
            Message::assistant(first.content),
            Message::user(results),
        ];
        peer.reply(&messages).await;
        let sent = peer.server.bodies()[1].to_string();
        assert!(sent.contains("malformed"), "{format:?}: {sent}");
    }
}

#[tokio::test]
async fn a_model_that_may_write_no_more_says_so_without_half_a_call() {
    for format in FORMATS {
        let turn = ModelTurn::new()
            .text("I will")
            .call("call_1", "add", &json!({"a": 1, "b": 2}))
            .malformed_call("call_2", "add", "{\"a\": ")
            .max_tokens();
        let peer = Peer::saying(format, turn).with_tool();
        let reply = peer.reply(&[user("hi")]).await;
        assert_eq!(reply.stop, Stop::MaxTokens, "{format:?}");
        let expected = [
            Block::text("I will"),
            call("call_1", json!({"a": 1, "b": 2})),
        ];
        assert_eq!(reply.content, expected, "{format:?}");
    }
}

#[tokio::test]
async fn a_refusal_is_one_in_the_words_of_the_model() {
    for format in FORMATS {
        let peer = Peer::saying(format, ModelTurn::new().refuses("I will not."));
        let reply = peer.reply(&[user("hi")]).await;
        assert_eq!(
            reply.stop,
            Stop::Refused(Some("I will not.".into())),
            "{format:?}"
        );
        let peer = Peer::saying(format, ModelTurn::new().text("Well").filtered());
        let reply = peer.reply(&[user("hi")]).await;
        assert_eq!(reply.stop, Stop::Refused(None), "{format:?}");
        assert_eq!(reply.content, [Block::text("Well")], "{format:?}");
    }
}

#[tokio::test]
async fn thoughts_are_kept_and_given_back_to_their_own_provider_alone() {
    for format in FORMATS {
        let turn = ModelTurn::new()
            .thinking("Adding is easy.", "signature-1")
            .call("call_1", "add", &json!({"a": 1, "b": 2}));
        let script = ModelScript::new()
            .turn(turn)
            .forever(ModelTurn::new().text("3"));
        let peer = Peer::start(format, script).with_tool();
        let (outcome, deltas) = peer.ask(&[user("hi")]).await;
        let reply = outcome.unwrap();
        assert_eq!(
            deltas[0],
            Delta::Reasoning("Adding is easy.".into()),
            "{format:?}"
        );
        let Some(Block::Reasoning {
            text,
            provider,
            opaque,
        }) = reply.content.first()
        else {
            panic!("{format:?}: {:?}", reply.content);
        };
        assert_eq!(text, "Adding is easy.");
        assert_eq!(provider, peer.provider.name());
        let result = vec![result("call_1", vec![Block::text("3")])];
        peer.reply(&after(reply.content.clone(), result.clone()))
            .await;
        let sent = peer.server.bodies()[1].to_string();
        assert!(sent.contains("Adding is easy."), "{format:?}: {sent}");

        let foreign = Block::Reasoning {
            text: text.clone(),
            provider: "somebody else".into(),
            opaque: opaque.clone(),
        };
        let mut content = reply.content;
        content[0] = foreign;
        peer.reply(&after(content, result)).await;
        let sent = peer.server.bodies()[2].to_string();
        assert!(!sent.contains("Adding is easy."), "{format:?}: {sent}");
    }
}

#[tokio::test]
async fn a_message_of_which_nothing_is_left_does_not_break_the_turns() {
    for format in FORMATS {
        let peer = Peer::saying(format, ModelTurn::new().text("hi"));
        let foreign = Block::Reasoning {
            text: "hm".into(),
            provider: "somebody else".into(),
            opaque: None,
        };
        peer.reply(&after(vec![foreign], vec![Block::text("Well?")]))
            .await;
    }
}

#[tokio::test]
async fn images_are_seen_or_told_in_words() {
    let words = "an image (image/png, 1 KB) was left out: this model cannot see";
    for format in FORMATS {
        let script = || ModelScript::new().forever(ModelTurn::new().text("a cat"));
        let messages = after(
            vec![call("call_1", json!({"a": 1, "b": 2}))],
            vec![
                result("call_1", vec![Block::text("here"), image()]),
                image(),
            ],
        );
        let peer = Peer::start(format, script()).with_tool();
        peer.reply(&messages).await;
        let sent = peer.server.bodies()[0].to_string();
        assert_eq!(
            sent.matches("iVBORw0KGgo=").count(),
            2,
            "{format:?}: {sent}"
        );
        assert!(!sent.contains(words));

        let peer = Peer::start(format, script()).with_tool().blind();
        peer.reply(&messages).await;
        let sent = peer.server.bodies()[0].to_string();
        assert!(!sent.contains("iVBORw0KGgo="), "{format:?}: {sent}");
        assert_eq!(sent.matches(words).count(), 2, "{format:?}: {sent}");
    }
}

#[tokio::test]
async fn what_may_be_written_is_limited_by_the_request_and_the_model() {
    for (format, member) in
        FORMATS
            .into_iter()
            .zip(["max_tokens", "max_output_tokens", "max_tokens"])
    {
        let peer = Peer::start(
            format,
            ModelScript::new().forever(ModelTurn::new().text("hi")),
        );
        for (wanted, expected) in [(None, 4096), (Some(100), 100), (Some(1_000_000), 4096)] {
            let messages = [user("hi")];
            let mut request = peer.request(&messages);
            request.max_output_tokens = wanted;
            peer.provider.reply(request, &mut |_| {}).await.unwrap();
            let sent = peer.server.bodies();
            let sent = sent.last().unwrap();
            assert_eq!(sent[member], json!(expected), "{format:?}");
        }
        peer.server.assert_no_violations();
    }
}
