//! Replies that break off, stand still, are not wanted any more, or are put off again and again.

use std::sync::Arc;
use std::time::Duration;

use cocode_agent::providers::{Chat, ChatOptions, Retrying};
use cocode_agent::{Block, Delta, Provider, ProviderError};
use cocode_testkit::{Gate, ModelFormat, ModelScript, ModelTurn};
use cocode_wire::{HttpClient, Url};
use serde_json::json;

use super::support::{FORMATS, Peer, user};

#[tokio::test]
async fn a_reply_that_is_cut_off_is_kept_as_far_as_it_goes() {
    for format in FORMATS {
        for turn in [
            ModelTurn::new().texts(&["I will", " go"]).cut_off(),
            ModelTurn::new().texts(&["I will", " go"]).ends_early(),
        ] {
            let peer = Peer::saying(format, turn);
            let error = peer.error(&[user("hi")]).await;
            let ProviderError::BrokeOff { said, .. } = &error else {
                panic!("{format:?}: {error:?}");
            };
            let said = cocode_agent::text_of(said);
            assert!(said.starts_with("I will"), "{format:?}: {said}");
        }
    }
}

#[tokio::test]
async fn half_a_call_is_not_among_what_was_said() {
    for format in FORMATS {
        let turn = ModelTurn::new()
            .text("Now.")
            .call("call_1", "add", &json!({"a": 1, "b": 2}))
            .ends_early();
        let peer = Peer::saying(format, turn).with_tool();
        let error = peer.error(&[user("hi")]).await;
        let ProviderError::BrokeOff { said, .. } = error else {
            panic!("{format:?}: {error:?}");
        };
        assert_eq!(said, [Block::text("Now.")], "{format:?}");
    }
}

#[tokio::test]
async fn a_connection_that_ends_before_anything_is_said_says_nothing() {
    for format in FORMATS {
        let peer = Peer::saying(format, ModelTurn::new().ends_early());
        let error = peer.error(&[user("hi")]).await;
        assert!(
            matches!(&error, ProviderError::BrokeOff { said, .. } if said.is_empty()),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn a_reply_that_stands_still_is_given_up() {
    for format in FORMATS {
        let peer = Peer::saying(format, ModelTurn::new().texts(&["I", " wait"]).stall());
        let messages = [user("hi")];
        let mut n_pieces = 0;
        // Once all has come, time passes by itself, up to the next deadline.
        let mut on_delta = |_| {
            n_pieces += 1;
            if n_pieces == 2 {
                tokio::time::pause();
            }
        };
        let outcome = peer
            .provider
            .reply(peer.request(&messages), &mut on_delta)
            .await;
        tokio::time::resume();
        let Err(ProviderError::BrokeOff { said, why, .. }) = outcome else {
            panic!("{format:?}: {outcome:?}");
        };
        assert_eq!(said, [Block::text("I wait")], "{format:?}");
        // Only one of the interfaces gives signs of life while its models think.
        let seconds = if format == ModelFormat::Anthropic {
            120
        } else {
            300
        };
        assert_eq!(
            why,
            format!("nothing more of the answer came for {seconds} s")
        );
    }
}

#[tokio::test]
async fn a_reply_that_takes_for_ever_is_given_up_whatever_signs_of_life_it_gives() {
    let peer = Peer::saying(ModelFormat::Chat, ModelTurn::new().text("I").stall());
    let url = Url::parse(&peer.server.base_url()).unwrap();
    let mut options = ChatOptions::new("local", url, None, HttpClient::default());
    options.patience.whole = Duration::from_mins(4);
    let messages = [user("hi")];
    let mut on_delta = |_| tokio::time::pause();
    let chat = Chat::new(options);
    let outcome = chat.reply(peer.request(&messages), &mut on_delta).await;
    let Err(ProviderError::BrokeOff { said, why, .. }) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(said, [Block::text("I")]);
    assert_eq!(why, "it was not whole after 4 minutes");
}

#[tokio::test]
async fn a_request_that_is_dropped_ends_over_there() {
    for format in FORMATS {
        let gate = Gate::new();
        let peer = Peer::saying(format, ModelTurn::new().text("I").hold(&gate).text("wait"));
        let messages = [user("hi")];
        let mut on_delta = |_| {};
        tokio::select! {
            outcome = peer.provider.reply(peer.request(&messages), &mut on_delta) => {
                panic!("{format:?}: {outcome:?}")
            }
            () = gate.reached() => {}
        }
        let abandoned = peer.server.abandoned().wait_for(|_| true).await;
        assert_eq!(abandoned.method, "POST");
    }
}

#[tokio::test]
async fn a_storm_of_limits_is_waited_out_as_long_as_the_provider_says() {
    for format in FORMATS {
        let limited = || {
            ModelTurn::status(429, "rate_limit_error", "slow down").header("retry-after-ms", "1")
        };
        let script = ModelScript::new()
            .turn(limited())
            .turn(
                ModelTurn::status(529, "overloaded_error", "Overloaded").header("retry-after", "0"),
            )
            .turn(limited())
            .turn(ModelTurn::new().text("at last"));
        let mut peer = Peer::start(format, script);
        peer.provider = Arc::new(Retrying::new(Arc::clone(&peer.provider)));
        let (outcome, deltas) = peer.ask(&[user("hi")]).await;
        assert_eq!(
            outcome.unwrap().content,
            [Block::text("at last")],
            "{format:?}"
        );
        peer.server.assert_no_violations();
        let waits: Vec<Duration> = deltas
            .iter()
            .filter_map(|delta| match delta {
                Delta::Restart { after, .. } => Some(*after),
                _ => None,
            })
            .collect();
        let [first, second, third] = waits.as_slice() else {
            panic!("{format:?}: {deltas:?}");
        };
        let millisecond = Duration::from_millis(1);
        assert_eq!(
            [*first, *second, *third],
            [millisecond, Duration::ZERO, millisecond]
        );
        assert_eq!(deltas.last(), Some(&Delta::Text("at last".into())));
        let bodies = peer.server.bodies();
        assert_eq!(bodies.len(), 4);
        assert!(
            bodies.iter().all(|body| *body == bodies[0]),
            "the same is asked again"
        );
    }
}

#[tokio::test]
async fn a_provider_that_never_recovers_is_given_up() {
    for format in FORMATS {
        let limited =
            ModelTurn::status(429, "rate_limit_error", "slow down").header("retry-after", "0");
        let peer = Peer::start(format, ModelScript::new().forever(limited));
        let retrying: Arc<dyn Provider> = Arc::new(Retrying::new(Arc::clone(&peer.provider)));
        let messages = [user("hi")];
        let outcome = retrying.reply(peer.request(&messages), &mut |_| {}).await;
        assert!(
            matches!(outcome, Err(ProviderError::RateLimited { .. })),
            "{outcome:?}"
        );
        assert_eq!(peer.server.requests().all().len(), 6);
    }
}
