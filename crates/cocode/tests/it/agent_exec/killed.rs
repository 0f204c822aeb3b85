//! `kill -9` at any moment: what happened is stored, whoever held a conversation is forgotten, nothing
//! that was started stays, and the conversation goes on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cocode_testkit::{HttpRequest, ModelFormat, ModelScript, ModelTurn, Script};
use serde_json::{Value, json};

use super::{Running, Stage, calls, results, says};
use crate::fronts::{Client, kill, wait_while};
use crate::interrupting::is_running;

/// Turns of each of the four conversations.
const TURNS: u64 = 50;
/// A command with this in it is still running when its turn is killed.
const LONG: &str = "long";

/// Whether a process has a word on its command line that contains this.
pub(super) fn is_anybody_called(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap();
    processes.flatten().any(|process| {
        let command = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let own = std::process::id().to_string();
        process.file_name() != own.as_str() && String::from_utf8_lossy(&command).contains(mark)
    })
}

/// Says with what everything can be had again, if it fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "whoever mends it needs it")]
            {
                eprintln!("the seed was {}", self.0);
            }
        }
    }
}

/// A model that looks around and runs a command, and then says so. What it is asked for is the command.
fn script(format: ModelFormat) -> ModelScript {
    let n_calls = AtomicUsize::new(0);
    ModelScript::new().forever_computed(move |request: &HttpRequest| {
        let body = request.json();
        if is_answered(format, &body) {
            let told = results(format, &body);
            return ModelTurn::new().texts(&["It", " said: ", told.last().unwrap()]);
        }
        let prompt = last_prompt(format, &body);
        let n = n_calls.fetch_add(2, Ordering::SeqCst);
        let (one, two) = (format!("call_{n}"), format!("call_{}", n + 1));
        let command = match prompt.strip_prefix(LONG) {
            Some(mark) => format!("echo {mark}; sleep 600.{mark}; echo"),
            None => format!("echo {prompt}"),
        };
        ModelTurn::new()
            .text("I look.")
            .call(&one, "list", &json!({}))
            .call(&two, "shell", &json!({ "command": command }))
    })
}

/// Whether the last that the model is shown is what tools said.
fn is_answered(format: ModelFormat, body: &Value) -> bool {
    let list = match format {
        ModelFormat::Responses => &body["input"],
        _ => &body["messages"],
    };
    let last = list.as_array().unwrap().last().unwrap();
    match format {
        ModelFormat::Anthropic => {
            let blocks = last["content"].as_array().unwrap();
            blocks.iter().all(|block| block["type"] == "tool_result")
        }
        ModelFormat::Responses => last["type"] == "function_call_output",
        ModelFormat::Chat => last["role"] == "tool",
    }
}

/// The last that the person said.
fn last_prompt(format: ModelFormat, body: &Value) -> String {
    let list = match format {
        ModelFormat::Responses => &body["input"],
        _ => &body["messages"],
    };
    let last = list.as_array().unwrap().last().unwrap();
    match &last["content"] {
        Value::String(text) => text.lines().last().unwrap().to_owned(),
        content => {
            let last = content.as_array().unwrap().last().unwrap();
            last["text"].as_str().unwrap().to_owned()
        }
    }
}

/// A conversation that is killed again and again.
struct Victim<'a> {
    stage: &'a Stage,
    random: fastrand::Rng,
    /// No other has it: digits.
    name: String,
    id: String,
    /// All that was stored when it was looked at last.
    stored: Vec<Value>,
    /// What was said to the model, in as far as anybody knows that it was heard.
    heard: Vec<String>,
    n_prompts: u32,
    n_killed: u32,
}

impl<'a> Victim<'a> {
    fn new(stage: &'a Stage, seed: u64, name: String) -> Self {
        Self {
            stage,
            random: fastrand::Rng::with_seed(seed),
            name,
            id: String::new(),
            stored: Vec::new(),
            heard: Vec::new(),
            n_prompts: 0,
            n_killed: 0,
        }
    }

    fn prompt(&mut self) -> String {
        self.n_prompts += 1;
        format!("{}{:03}", self.name, self.n_prompts)
    }

    /// Looks at what is stored: all that was there before is, and nobody holds it.
    fn look(&mut self) -> u64 {
        let shown = self.stage.shown(&self.id);
        assert_eq!(shown["in_use"], false, "{}", self.id);
        let events = shown["events"].as_array().unwrap().clone();
        for (place, event) in events.iter().enumerate() {
            assert_eq!(event["number"], place + 1, "{}", self.id);
        }
        let before = events.get(..self.stored.len());
        assert_eq!(before, Some(self.stored.as_slice()), "{}", self.id);
        self.stored = events;
        let asked: Vec<&str> = self
            .records("asked")
            .map(|record| record["content"][0]["text"].as_str().unwrap())
            .collect();
        for prompt in &self.heard {
            let times = asked.iter().filter(|asked| *asked == prompt).count();
            assert_eq!(times, 1, "{prompt} of {}", self.id);
        }
        shown["turns"].as_u64().unwrap()
    }

    fn records<'b>(&'b self, kind: &'b str) -> impl Iterator<Item = &'b Value> {
        let records = self.stored.iter().map(|event| &event["event"]);
        records.filter(move |record| record["record"] == kind)
    }

    /// Everything that was told of a turn before it was killed is stored.
    fn check_told(&self, told: &[Value]) {
        for event in told {
            let is_stored = match event["type"].as_str().unwrap() {
                "replied" => self.records("replied").any(|record| {
                    let (said, kept) = (&event["content"], &record["content"]);
                    said == kept
                }),
                "call_begun" => self
                    .records("call_begun")
                    .any(|record| record["call"]["id"] == event["id"]),
                "call_ended" => self.records("call_ended").any(|record| {
                    record["id"] == event["id"] && record["content"] == event["content"]
                }),
                "ended" => self.records("ended").any(|record| record["how"] == "done"),
                _ => true,
            };
            assert!(is_stored, "{event} of {} is lost", self.id);
        }
    }

    /// A turn of `cocode exec`, whole or killed. Gives how many turns there are now.
    fn exec(&mut self) -> u64 {
        let is_new = self.id.is_empty();
        let (prompt, is_killed) = (self.prompt(), !is_new && self.random.u8(..4) > 0);
        let is_long = is_killed && self.random.u8(..3) == 0;
        let mark = prompt.clone();
        let prompt = if is_long {
            format!("{LONG}{prompt}")
        } else {
            prompt
        };
        let mut words = vec!["--json", prompt.as_str()];
        if !is_new {
            words.extend(["--resume", self.id.as_str()]);
        }
        let mut running = Running::start(&mut self.stage.exec(&words));
        if is_killed {
            self.n_killed += 1;
            let by_event = is_long || self.random.bool();
            let n_events = if by_event && !is_long {
                self.random.usize(..14)
            } else {
                0
            };
            for _ in 0..n_events {
                if running.next().is_none() {
                    break;
                }
            }
            if is_long {
                let command = format!("600.{mark}");
                wait_while(|| !is_anybody_called(&command));
            }
            let most = if by_event { 20 } else { 250 };
            std::thread::sleep(Duration::from_millis(self.random.u64(..most)));
            kill(running.child.id());
        }
        let (code, events) = running.finish();
        let events = events.0;
        if is_new {
            events[0]["session_id"]
                .as_str()
                .unwrap()
                .clone_into(&mut self.id);
        }
        if events.iter().any(|event| event["type"] == "asking") {
            self.heard.push(prompt.clone());
        }
        if !is_killed {
            assert_eq!(code, Some(0), "{events:#?}");
            let said = events.last().unwrap()["response"].as_str().unwrap();
            assert!(said.contains(&prompt), "{said}");
        }
        wait_while(|| is_anybody_called(&mark));
        let turns = self.look();
        self.check_told(&events);
        turns
    }

    /// Some turns of one `cocode mcp serve --agent`, the last of them killed.
    fn serve(&mut self) -> u64 {
        let words = [
            "mcp",
            "serve",
            "--agent",
            "--provider",
            self.stage.provider(),
        ];
        let mut command = self.stage.cocode(&words);
        command.args(["--model", self.stage.model_name()]);
        let mut client = Client::start(&mut command);
        client.open(&json!({}));
        client.skip_notifications();
        for number in 1..=self.random.u64(2..8) {
            let prompt = self.prompt();
            let answer = client.ask(number, "tools/call", &self.call(&prompt));
            let result = &answer["result"];
            assert_eq!(result["isError"], false, "{answer}");
            let said = result["structuredContent"]["response"].as_str().unwrap();
            assert!(said.contains(&prompt), "{answer}");
            if self.id.is_empty() {
                let id = result["structuredContent"]["session_id"].as_str();
                id.unwrap().clone_into(&mut self.id);
            }
            self.heard.push(prompt);
        }
        let is_long = self.random.u8(..3) == 0;
        let mark = self.prompt();
        let prompt = if is_long {
            format!("{LONG}{mark}")
        } else {
            mark.clone()
        };
        client.request(99, "tools/call", &self.call(&prompt));
        std::thread::sleep(Duration::from_millis(self.random.u64(..150)));
        // This kills it.
        drop(client);
        self.n_killed += 1;
        wait_while(|| is_anybody_called(&mark));
        self.look()
    }

    fn call(&self, prompt: &str) -> Value {
        if self.id.is_empty() {
            return json!({"name": "cocode", "arguments": {"prompt": prompt}});
        }
        let arguments = json!({"session_id": self.id, "message": prompt});
        json!({"name": "cocode-reply", "arguments": arguments})
    }

    /// Lives through all of it.
    fn live(&mut self, mut turn: impl FnMut(&mut Self) -> u64) -> u64 {
        let mut turns = 0;
        while turns < TURNS {
            turns = turn(self);
        }
        assert!(self.n_killed > 5, "only {} were killed", self.n_killed);
        turns
    }
}

#[test]
fn two_hundred_turns_that_are_killed_at_random_lose_nothing() {
    let seed = Seed(fastrand::u64(..));
    // Two interfaces, as what is left open by a kill has to be closed for each in its own way.
    let stages = [ModelFormat::Anthropic, ModelFormat::Responses]
        .map(|format| Stage::new(format, script(format)));
    let turns: u64 = std::thread::scope(|scope| {
        let lives: Vec<_> = (0..4_u64)
            .map(|number| {
                let stage = &stages[usize::try_from(number % 2).unwrap()];
                // Digits, as it is also for how long a command sleeps.
                let name = format!("4711{}0{number}", std::process::id());
                let mut victim = Victim::new(stage, seed.0.wrapping_add(number), name);
                scope.spawn(move || {
                    let turns = if number < 2 {
                        victim.live(Victim::exec)
                    } else {
                        victim.live(Victim::serve)
                    };
                    (turns, victim.id)
                })
            })
            .collect();
        let ended = lives.into_iter().map(std::thread::ScopedJoinHandle::join);
        let ended = ended.map(|life| life.unwrap_or_else(|why| std::panic::resume_unwind(why)));
        ended.map(|(turns, _)| turns).sum()
    });
    assert!(turns >= 4 * TURNS, "{turns}");
    for stage in &stages {
        let listed = stage.home.json(&["sessions", "list"]);
        let listed = listed.as_array().unwrap();
        assert_eq!(listed.len(), 2, "{listed:#?}");
        assert!(listed.iter().all(|one| one["in_use"] == false));
        // Whoever died while holding one has left nothing behind.
        let state = stage.home.home().join("state/conversations");
        let locks = files_that_end_so(&state, ".lock");
        assert_eq!(locks, [] as [String; 0]);
        // And one more turn sees everything.
        let mine = listed.iter().find(|one| one["owner"] == "you").unwrap();
        let id = mine["session_id"].as_str().unwrap();
        let finished = stage.run(&["--resume", id, "the-end"]).with_code(0);
        assert!(finished.stdout.contains("the-end"), "{}", finished.stdout);
        let asked = stage.records(id, "asked").len();
        let last = stage.bodies().last().unwrap().to_string();
        let seen = stage.records(id, "asked");
        let seen = seen.iter().filter(|record| {
            let prompt = record["content"][0]["text"].as_str().unwrap();
            last.contains(prompt)
        });
        assert_eq!(seen.count(), asked);
    }
}

/// The names of files anywhere below a directory that end so.
fn files_that_end_so(directory: &std::path::Path, end: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_that_end_so(&path, end));
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn what_a_model_had_said_of_a_reply_is_there_after_a_kill() {
    let gate = cocode_testkit::Gate::new();
    let held = ModelTurn::new().text("Half of it is").hold(&gate);
    let script = ModelScript::new().turn(held).turn(says("The other half."));
    let stage = Stage::new(ModelFormat::Chat, script);
    let mut running = Running::start(&mut stage.exec(&["--json", "Well?"]));
    running.until("text");
    // It is written down within half a second, and then it is what `show` has.
    std::thread::sleep(Duration::from_millis(1_500));
    kill(running.child.id());
    let (code, events) = running.finish();
    assert_eq!(code, None);
    let id = events.id();
    stage.run(&["--resume", &id, "Go on."]).with_code(0);
    let kept = stage.records(&id, "broke_off");
    assert_eq!(kept[0]["content"][0]["text"], "Half of it is");
    let body = stage.bodies()[1].to_string();
    super::assert_contains(&body, "Half of it is");
}

#[test]
fn servers_of_an_agent_that_is_killed_end_with_it() {
    let gate = cocode_testkit::Gate::new();
    let server = Script::new()
        .ignore_sigterm()
        .stay_after_eof()
        .on("tools/call")
        .hold(&gate)
        .text_result("late")
        .stdio();
    let script = ModelScript::new()
        .turn(calls("w", "wait_for_servers", &json!({})))
        .turn(calls("c1", "mcp__slow__echo", &json!({"text": "x"})))
        .turn(says("It did not come."));
    let stage = Stage::new(ModelFormat::Responses, script);
    let mut add = stage.home.command(["mcp", "add", "slow", "--"]);
    add.arg(server.program()).args(server.args());
    assert!(add.output().unwrap().status.success());
    let words = ["--json", "--sandbox", "workspace-write", "Call it."];
    let running = Running::start(&mut stage.exec(&words));
    let received = server.received();
    received.wait_for_blocking(|message| message.is("tools/call"));
    assert!(is_running(&server));
    kill(running.child.id());
    let (code, events) = running.finish();
    assert_eq!(code, None);
    wait_while(|| is_running(&server));
    let finished = stage.run(&["--resume", &events.id(), "Well?"]);
    assert_eq!(finished.with_code(0).stdout, "It did not come.\n");
    let told = stage.results(2);
    assert!(told[0].contains("interrupted"), "{told:?}");
}
