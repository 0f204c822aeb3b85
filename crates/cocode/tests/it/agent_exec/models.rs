//! Which model is asked, what lets us in there, and that nobody else gets to see that.

use std::path::Path;

use cocode_testkit::{ModelFormat, ModelScript, ModelTurn};

use super::{FORMATS, KEY, Stage, assert_contains, says, shell};
use crate::harness::Finished;
use crate::home::Home;

#[test]
fn without_a_model_nothing_begins_and_people_are_told_what_to_do() {
    let home = Home::new();
    let finished = home.run(["exec", "Hello."]).with_code(2);
    finished.complains(&["there is no model", "ANTHROPIC_API_KEY", "code: no-model"]);
    let finished = home.run(["exec", "--provider", "openai", "Hello."]);
    finished
        .with_code(2)
        .complains(&["OPENAI_API_KEY is not set", "cocode secret set openai"]);
    let finished = home.run(["exec", "--provider", "antropic", "Hello."]);
    finished
        .with_code(2)
        .complains(&["did you mean `anthropic`?", "known are: "]);
    let finished = home.run(["exec", "--provider", "ollama", "Hello."]);
    finished
        .with_code(2)
        .complains(&["no model is chosen for the provider `ollama`"]);
    let finished = home.run(["--json", "exec", "Hello."]).with_code(2);
    assert_eq!(finished.error()["code"], "no-model");
    assert_eq!(finished.stdout, "");
    // What has not begun is not kept.
    assert_eq!(home.json(&["sessions", "list"]), serde_json::json!([]));
}

#[test]
fn a_key_is_enough_to_begin() {
    for (format, model) in [
        (ModelFormat::Anthropic, "claude-sonnet-4-5"),
        (ModelFormat::Responses, "gpt-5"),
    ] {
        let stage = Stage::new(format, ModelScript::new().turn(says("Good day.")));
        let output = stage.cocode(&["exec", "Hello."]).output().unwrap();
        assert_eq!(Finished::of(output).with_code(0).stdout, "Good day.\n");
        assert_eq!(stage.bodies()[0]["model"], model);
    }
}

#[test]
fn providers_and_models_are_configured() {
    for format in FORMATS {
        let script = ModelScript::new().turn(says("One.").usage(1_000_000, 100_000, 0, 0));
        let stage = Stage::new(format, script.turn(says("Two.")));
        let kind = match format {
            ModelFormat::Anthropic => "anthropic",
            ModelFormat::Responses => "openai",
            ModelFormat::Chat => "openai-compatible",
        };
        let config = format!(
            "[providers.work]\nkind = '{kind}'\nbase_url = '{}'\nmodel = 'big'\n\
             api_key_env = 'WORK_KEY'\n\n[models.big]\ncontext_window = 5000000\n\
             input_price = 2.0\noutput_price = 10.0\n\n[models.small]\nprovider = 'work'\n",
            stage.model.base_url()
        );
        stage.home.user_file("config.toml", &config);
        let run = |words: &[&str]| {
            let mut command = stage.home.command(words);
            Finished::of(command.env("WORK_KEY", KEY).output().unwrap())
        };
        let finished = run(&["exec", "--json", "Hello."]).with_code(0);
        let events = super::Events::read(&finished.stdout);
        assert_eq!(events.end()["cost_usd"], 3.0, "{format:?}");
        run(&["exec", "--model", "small", "Hello."]).with_code(0);
        let models: Vec<_> = stage
            .bodies()
            .iter()
            .map(|body| body["model"].clone())
            .collect();
        assert_eq!(models, ["big", "small"]);
        let finished = stage.home.run(["exec", "Hello."]).with_code(2);
        finished.complains(&["WORK_KEY is not set", "code: no-model"]);
    }
}

/// Fails if the key is in any file below this directory.
fn assert_no_key_below(directory: &Path) -> usize {
    let mut n_files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            n_files += assert_no_key_below(&path);
        } else if let Ok(bytes) = std::fs::read(&path) {
            n_files += 1;
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(KEY), "{}", path.display());
        }
    }
    n_files
}

#[test]
fn the_key_is_shown_to_nobody_but_the_provider() {
    for format in FORMATS {
        let told = format!("Incorrect API key provided: {KEY}.");
        let script = ModelScript::new()
            .turn(shell(
                "c1",
                "env; cat /proc/self/environ; tr '\\0' '\\n' < /proc/$PPID/environ",
            ))
            .turn(says("Nothing found."))
            .turn(ModelTurn::status(401, "authentication_error", &told))
            .turn(says("Let me").then_error("authentication_error", &told))
            .turn(ModelTurn::status(400, "invalid_request_error", &told));
        let stage = Stage::new(format, script);
        let config = format!(
            "[providers.work]\nkind = '{}'\nbase_url = '{}'\nmodel = 'some'\n\
             api_key_env = 'WORK_KEY'\nmax_retries = 0\n",
            match format {
                ModelFormat::Anthropic => "anthropic",
                ModelFormat::Responses => "openai",
                ModelFormat::Chat => "openai-compatible",
            },
            stage.model.base_url()
        );
        stage.home.user_file("config.toml", &config);
        let log = stage.home.home().join("everything.log");
        let mut printed = String::new();
        for words in [
            &["exec", "Look.", "-vv"][..],
            &["exec", "Again.", "-vv"],
            &["exec", "Again.", "--json"],
            &["exec", "Again."],
        ] {
            let mut command = stage.home.command(words);
            command
                .arg("--log-file")
                .arg(&log)
                .env("COCODE_LOG", "trace");
            let output = command.env("WORK_KEY", KEY).output().unwrap();
            let finished = Finished::of(output);
            printed += &finished.stdout;
            printed += &finished.stderr;
        }
        assert!(!printed.contains(KEY), "{format:?}: {printed}");
        assert_contains(&printed, "Incorrect API key provided");
        assert!(std::fs::metadata(&log).unwrap().len() > 0);
        let n_files = assert_no_key_below(stage.home.home().parent().unwrap());
        assert!(n_files > 2, "{n_files}");
        // The provider itself gets it, once in every request.
        let requests = stage.model.requests().all();
        assert!(requests.iter().all(|request| {
            let headers = format!("{:?}", request.headers);
            headers.matches(KEY).count() == 1 && !request.json().to_string().contains(KEY)
        }));
    }
}

#[test]
fn a_key_is_not_sent_over_plain_http_to_others() {
    let home = Home::new();
    let mut command = home.command(["exec", "Hello."]);
    command.env("ANTHROPIC_BASE_URL", "http://models.example");
    let finished = Finished::of(command.env("ANTHROPIC_API_KEY", KEY).output().unwrap());
    let finished = finished.with_code(2);
    finished.complains(&["plain http", "code: no-model"]);
    assert!(!finished.stderr.contains(KEY));
}
