//! A small agent on top of the library: it shows the tools of all servers to a model, or lets it search
//! them if they are many, calls what it says, and gives results and errors back until the model has an
//! answer.
//!
//! The model here needs no network: it calls the first tool whose name is a word of the question,
//! with the JSON object in the question as arguments, and answers with what came back. If it is not
//! shown such a tool, it searches once. Put your own behind the [`Model`] trait.
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
    CallContext, Content, Dialect, Event, Manager, ManagerOptions, ProviderTool, RawJson, Said,
    Searcher, ServerSpec, Toolbox, ToolboxOptions,
};
use serde_json::{Value, json};

/// Turns after which an agent that has no answer gives up.
const MAX_TURNS: usize = 8;
/// Tokens that the model sees at once.
const CONTEXT_WINDOW: u64 = 200_000;

/// What a model says.
enum Reply {
    Answer(String),
    Call { tool: String, arguments: Value },
}

/// Whatever decides what to do next.
trait Model {
    /// `seen` is the question, then what each call gave; `tools` is what can be called.
    fn reply(&mut self, seen: &[String], tools: &[&ProviderTool]) -> Reply;
}

/// A model that reads the question as a command.
#[derive(Default)]
struct Literal {
    has_searched: bool,
    has_called: bool,
}

impl Model for Literal {
    fn reply(&mut self, seen: &[String], tools: &[&ProviderTool]) -> Reply {
        if let ([_question, .., last], true) = (seen, self.has_called) {
            return Reply::Answer(last.clone());
        }
        let question = seen.first().map_or("", String::as_str);
        let (words, rest) = question.split_once('{').unwrap_or((question, "}"));
        let named = words.split_whitespace().find_map(|word| {
            let end = format!("__{word}");
            tools.iter().find(|tool| tool.name.ends_with(&end))
        });
        let names = || tools.iter().map(|tool| tool.name.clone());
        let Some(tool) = named else {
            if self.has_searched || !names().any(|name| name == "tool_search") {
                let names: Vec<String> = names().collect();
                return Reply::Answer(format!("I can call: {}", names.join(", ")));
            }
            self.has_searched = true;
            return Reply::Call {
                tool: "tool_search".to_owned(),
                arguments: json!({ "query": words }),
            };
        };
        self.has_called = true;
        match serde_json::from_str(&format!("{{{rest}")) {
            Ok(arguments) => Reply::Call {
                tool: tool.name.clone(),
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
        work(&manager, &mut Literal::default(), question).await
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
    let mut toolbox = Toolbox::new(ToolboxOptions {
        searcher: Searcher {
            context_window: Some(CONTEXT_WINDOW),
            calls_tools: true,
        },
        ..ToolboxOptions::new(Dialect::Plain)
    });
    let mut seen = vec![question];
    for _ in 0..MAX_TURNS {
        toolbox.update(&manager.catalog());
        let (tool, arguments) = match model.reply(&seen, &toolbox.definitions()) {
            Reply::Answer(answer) => return answer,
            Reply::Call { tool, arguments } => (tool, arguments),
        };
        seen.push(match toolbox.handle(&tool, &arguments) {
            Said::Answer(text) | Said::Unknown(text) | Said::Mistaken(text) => text,
            Said::Call { name, arguments } => call(manager, name.as_str(), &arguments).await,
        });
    }
    "I have no answer.".to_owned()
}

async fn call(manager: &Manager, name: &str, arguments: &Value) -> String {
    let arguments = match RawJson::of(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return error.to_string(),
    };
    let context = CallContext::default();
    match manager.call(name, Some(&arguments), context).await {
        Ok(called) => texts(&called.result.content()),
        // A model can act on these: each says what happened and what to do.
        Err(error) => error.for_model(),
    }
}

fn texts(content: &[Content]) -> String {
    let texts = content.iter().map(|block| match block {
        Content::Text(text) => text.clone(),
        other => format!("{other:?}"),
    });
    texts.collect::<Vec<_>>().join("\n")
}
