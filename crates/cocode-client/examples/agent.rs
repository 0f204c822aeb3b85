//! A small agent on top of the library: it offers the tools of all servers to a model, lets it call
//! them, and gives results and errors back until the model has an answer.
//!
//! The model here needs no network: it calls the first tool whose name is a word of the question,
//! with the JSON object in the question as arguments, and answers with what came back. Put your own
//! behind the [`Model`] trait.
//!
//! ```text
//! cargo run -p cocode-client --example agent -- \
//!     'echo {"message": "hello"}' -- npx -y @modelcontextprotocol/server-everything
//! ```
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "an example talks to its user, and passes its environment on"
)]

use std::error::Error;

use cocode_client::{
    CallContext, Catalog, Content, Event, Manager, ManagerOptions, RawJson, ServerSpec,
};

/// Turns after which an agent that has no answer gives up.
const MAX_TURNS: usize = 8;

/// What a model says.
enum Reply {
    Answer(String),
    Call { tool: String, arguments: RawJson },
}

/// Whatever decides what to do next.
trait Model {
    /// `seen` is the question, then what each tool gave.
    fn reply(&mut self, seen: &[String], catalog: &Catalog) -> Reply;
}

/// A model that reads the question as a command.
struct Literal;

impl Model for Literal {
    fn reply(&mut self, seen: &[String], catalog: &Catalog) -> Reply {
        if let [_question, .., last] = seen {
            return Reply::Answer(last.clone());
        }
        let question = seen.first().map_or("", String::as_str);
        let (words, rest) = question.split_once('{').unwrap_or((question, "}"));
        let named = words.split_whitespace().find_map(|word| {
            let mut tools = catalog.tools();
            tools.find(|(_, found)| found.tool.name.as_str() == word)
        });
        let Some((name, _)) = named else {
            let names: Vec<&str> = catalog.tools().map(|(name, _)| name.as_str()).collect();
            return Reply::Answer(format!("I can call: {}", names.join(", ")));
        };
        match RawJson::parse(format!("{{{rest}")) {
            Ok(arguments) => Reply::Call {
                tool: name.to_string(),
                arguments,
            },
            Err(error) => Reply::Answer(format!("these are no arguments: {error}")),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let question = arguments
        .next()
        .ok_or("usage: agent QUESTION -- COMMAND…")?;
    let mut command = arguments.skip_while(|word| word == "--");
    let program = command.next().ok_or("usage: agent QUESTION -- COMMAND…")?;
    let manager = Manager::new(ManagerOptions::with_environment(std::env::vars_os()));
    let mut events = manager.events();
    let spec = ServerSpec::program("server".parse()?, program, command);
    manager.apply([spec]).await;
    let telling = async {
        while let Some(event) = events.next().await {
            if let Event::ServerStateChanged { server, state } = event {
                eprintln!("{server}: {}", state.kind());
            }
        }
    };
    let working = async {
        let startup = manager.wait_for_startup().await;
        for (name, state) in &startup.failed {
            let trouble = state.trouble().map(ToString::to_string);
            eprintln!("{name} is not there: {}", trouble.unwrap_or_default());
        }
        for name in &startup.slow {
            eprintln!("{name} takes its time; going on without it");
        }
        work(&manager, &mut Literal, question).await
    };
    let answer = tokio::select! {
        answer = working => answer,
        () = telling => "the manager is gone".to_owned(),
    };
    println!("{answer}");
    manager.shutdown().await;
    Ok(())
}

/// The loop: ask the model, do what it says, tell it what came of that.
async fn work(manager: &Manager, model: &mut impl Model, question: String) -> String {
    let mut seen = vec![question];
    for _ in 0..MAX_TURNS {
        match model.reply(&seen, &manager.catalog()) {
            Reply::Answer(answer) => return answer,
            Reply::Call { tool, arguments } => {
                let called = manager
                    .call(&tool, Some(&arguments), CallContext::default())
                    .await;
                seen.push(match called {
                    Ok(called) => texts(&called.result.content()),
                    // A model can act on these: each says what happened and what to do.
                    Err(error) => error.for_model(),
                });
            }
        }
    }
    "I have no answer.".to_owned()
}

fn texts(content: &[Content]) -> String {
    let texts = content.iter().map(|block| match block {
        Content::Text(text) => text.clone(),
        other => format!("{other:?}"),
    });
    texts.collect::<Vec<_>>().join("\n")
}
