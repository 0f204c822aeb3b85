//! Models and providers that do not do what they should, in every format.

use std::sync::atomic::{AtomicUsize, Ordering};

use cocode_testkit::{ModelFormat, ModelScript, ModelTurn};
use serde_json::json;

use super::{FORMATS, Stage, assert_contains, calls, says};

/// Too many requests: come back at once.
fn storm() -> ModelTurn {
    let turn = ModelTurn::status(429, "rate_limit_error", "slow down");
    turn.header("retry-after", "0")
}

/// A reply whose last event is not whole. In one format that is a piece of the text, in the others an
/// event that says that the text is over.
fn cut_in_the_middle() -> ModelTurn {
    ModelTurn::new().texts(&["I was ab", "out to"]).cut_off()
}

/// What a provider says of a conversation that is longer than its model sees.
fn too_long(format: ModelFormat) -> ModelTurn {
    match format {
        ModelFormat::Anthropic => {
            let message = "prompt is too long: 214315 tokens > 200000 maximum";
            ModelTurn::status(400, "invalid_request_error", message)
        }
        ModelFormat::Responses => {
            let message = "Your input exceeds the context window of this model.";
            ModelTurn::status(400, "context_length_exceeded", message)
        }
        ModelFormat::Chat => {
            let message = "This model's maximum context length is 32768 tokens.";
            ModelTurn::status(400, "context_length_exceeded", message)
        }
    }
}

#[test]
fn a_refusal_is_an_error_of_the_turn_and_the_conversation_goes_on_without_it() {
    for format in FORMATS {
        let script = ModelScript::new()
            .turn(says("I cannot help with that.").refuses("not this"))
            .turn(says("Gladly."));
        let stage = Stage::new(format, script);
        let events = stage.events(&["Do something bad."], 1);
        assert_eq!(events.end()["ending"], "refused", "{format:?}");
        let finished = stage.run(&["--resume", &events.id(), "Something good."]);
        assert_eq!(finished.with_code(0).stdout, "Gladly.\n");
        let body = stage.bodies()[1].to_string();
        assert!(!body.contains("something bad"), "{body}");
    }
}

#[test]
fn what_a_filter_stops_is_a_refusal() {
    for format in FORMATS {
        let script = ModelScript::new().turn(says("Well, first").filtered());
        let stage = Stage::new(format, script);
        let events = stage.events(&["Do something bad."], 1);
        assert_eq!(events.end()["ending"], "refused", "{format:?}");
    }
}

#[test]
fn a_refusal_is_told_to_people_with_its_code() {
    let script = ModelScript::new().turn(says("No.").refuses("not this"));
    let stage = Stage::new(ModelFormat::Anthropic, script);
    let finished = stage.run(&["Do something bad."]).with_code(1);
    assert_eq!(finished.stdout, "");
    finished.complains(&["the model refused", "not this", "code: turn-failed"]);
}

#[test]
fn a_stream_that_is_cut_off_is_asked_for_again() {
    for format in FORMATS {
        for cut in [cut_in_the_middle(), says("I was ab").ends_early()] {
            let script = ModelScript::new()
                .turn(cut)
                .turn(says("I was about to say yes."));
            let stage = Stage::new(format, script);
            let events = stage.events(&["Well?"], 0);
            assert_eq!(events.end()["response"], "I was about to say yes.");
            assert_eq!(events.of("restarting").len(), 1, "{format:?}");
        }
    }
}

#[test]
fn a_stream_that_is_always_cut_off_ends_the_turn_and_what_was_said_is_kept() {
    for format in FORMATS {
        let script = ModelScript::new().forever(cut_in_the_middle());
        let stage = Stage::new(format, script);
        let events = stage.events(&["Well?"], 3);
        assert_eq!(events.end()["ending"], "failed");
        let kept = stage.records(&events.id(), "broke_off");
        let said = kept[0]["content"][0]["text"].as_str().unwrap();
        assert!(said.starts_with("I was ab"), "{format:?}: {said}");
        // Nothing is asked for again without end.
        assert_eq!(stage.bodies().len(), 3);
    }
}

#[test]
fn an_error_in_the_middle_of_a_reply_is_asked_for_again() {
    for format in FORMATS {
        let broken = says("Let me").then_error("overloaded_error", "Overloaded");
        let script = ModelScript::new().turn(broken).turn(says("Here."));
        let stage = Stage::new(format, script);
        let events = stage.events(&["Well?"], 0);
        assert_eq!(events.end()["response"], "Here.", "{format:?}");
    }
}

#[test]
fn a_storm_of_429_is_waited_out_as_the_provider_wants() {
    for format in FORMATS {
        let mut script = ModelScript::new();
        for _ in 0..5 {
            script = script.turn(storm());
        }
        let stage = Stage::new(format, script.turn(says("At last.")));
        let events = stage.events(&["Well?"], 0);
        assert_eq!(events.end()["response"], "At last.");
        let restarts = events.of("restarting");
        assert_eq!(restarts.len(), 5, "{format:?}");
        assert_eq!(restarts[0]["after_ms"], 0);
    }
}

#[test]
fn a_storm_of_429_that_does_not_end_is_given_up_and_the_conversation_stays() {
    for format in FORMATS {
        let mut script = ModelScript::new();
        for _ in 0..6 {
            script = script.turn(storm());
        }
        let stage = Stage::new(format, script.turn(says("At last.")));
        let events = stage.events(&["Well?"], 3);
        assert_eq!(events.end()["ending"], "failed");
        assert_contains(events.end()["why"].as_str().unwrap(), "slow down");
        assert_eq!(stage.bodies().len(), 6, "{format:?}");
        let finished = stage.run(&["--resume", &events.id(), "And now?"]);
        assert_eq!(finished.with_code(0).stdout, "At last.\n");
    }
}

#[test]
fn what_is_no_use_to_ask_again_is_asked_once() {
    for (status, kind, code) in [
        (401, "authentication_error", 3),
        (404, "not_found_error", 3),
        (400, "invalid_request_error", 3),
    ] {
        for format in FORMATS {
            let script = ModelScript::new().turn(ModelTurn::status(status, kind, "go away"));
            let stage = Stage::new(format, script);
            let finished = stage.run(&["Well?"]).with_code(code);
            finished.complains(&["go away", "code: model-failed"]);
            assert_eq!(finished.stdout, "");
            assert_eq!(stage.bodies().len(), 1);
        }
    }
}

#[test]
fn a_provider_that_is_not_there_is_told() {
    let home = crate::home::Home::new();
    home.user_file(
        "config.toml",
        "[providers.gone]\nkind = 'openai-compatible'\nbase_url = 'http://127.0.0.1:9/v1'\n\
         model = 'm'\nmax_retries = 0\n",
    );
    let finished = home.run(["exec", "Well?"]).with_code(3);
    finished.complains(&["gone", "code: model-failed"]);
}

#[test]
fn a_conversation_that_is_too_long_is_summed_up_and_goes_on() {
    for format in FORMATS {
        let script = ModelScript::new()
            .turn(says("Noted."))
            .turn(too_long(format))
            .turn(says("They want the word KIWI remembered."))
            .turn(says("KIWI."));
        let stage = Stage::new(format, script);
        let id = stage.events(&["Remember the word KIWI."], 0).id();
        let events = stage.events(&["--resume", &id, "Which word was it?"], 0);
        assert_eq!(events.end()["response"], "KIWI.", "{format:?}");
        assert_eq!(events.of("compacting").len(), 1);
        assert_eq!(events.of("compacted").len(), 1);
        let bodies = stage.bodies();
        assert_contains(&bodies[2].to_string(), "Remember the word KIWI.");
        assert!(stage.tools(2).is_empty());
        let last = bodies[3].to_string();
        assert_contains(&last, "They want the word KIWI remembered.");
        assert_contains(&last, "Which word was it?");
        assert!(!last.contains("Noted."), "{last}");
        assert_eq!(stage.records(&id, "compacted").len(), 1);
    }
}

#[test]
fn a_conversation_is_summed_up_before_it_is_too_long() {
    for format in FORMATS {
        let script = ModelScript::new()
            .turn(calls("c1", "read", &json!({"path": "long.txt"})))
            .turn(says("The file is full of words."))
            .turn(says("Words."));
        let stage = Stage::new(format, script);
        let long = "words and words and words\n".repeat(400);
        stage.home.project_file("long.txt", &long);
        let small = format!(
            "[models.{}]\ncontext_window = 3000\nmax_output_tokens = 500\n",
            stage.model_name()
        );
        stage.home.user_file("config.toml", &small);
        let events = stage.events(&["What is in long.txt?"], 0);
        assert_eq!(events.end()["response"], "Words.", "{format:?}");
        assert_eq!(events.of("compacted").len(), 1);
        assert_contains(&stage.bodies()[2].to_string(), "The file is full of words.");
    }
}

#[test]
fn a_model_that_loops_is_warned_and_then_stopped() {
    for format in FORMATS {
        let n = AtomicUsize::new(0);
        let script = ModelScript::new().forever_computed(move |_| {
            let id = format!("loop_{}", n.fetch_add(1, Ordering::SeqCst));
            calls(&id, "list", &json!({}))
        });
        let stage = Stage::new(format, script);
        let finished = stage.run(&["Go on."]).with_code(1);
        finished.complains(&["again and again", "code: turn-failed"]);
        let bodies = stage.bodies();
        assert_eq!(bodies.len(), 6, "{format:?}");
        assert!(!bodies[2].to_string().contains("same calls"));
        assert_contains(&bodies[3].to_string(), "same calls");
    }
}

#[test]
fn a_reply_that_reached_its_limit_is_continued() {
    for format in FORMATS {
        let script = ModelScript::new()
            .turn(says("One, two,").max_tokens())
            .turn(says("three."));
        let stage = Stage::new(format, script);
        let finished = stage.run(&["Count."]).with_code(0);
        assert_eq!(finished.stdout, "three.\n", "{format:?}");
        assert_contains(&stage.bodies()[1].to_string(), "One, two,");
    }
}
