//! A call of one of the tools: begins a turn, or comes back to one, and waits for what comes of it.

use std::pin::pin;
use std::sync::Arc;

use cocode_core::Era;
use cocode_wire::serve::Sink;
use cocode_wire::{RpcError, code};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::answers::{input_required, refused};
use super::arguments::{self, Wanted};
use super::asking::Asker;
use super::client::{Caller, Client};
use super::finished::Finished;
use super::parking::Call;
use super::person::Person;
use super::progress::{Reporter, Way};
use super::questions::Questions;
use super::request::Params;
use super::talk::Talk;
use super::tools::{BEGIN, REPLY};
use super::turns::{Job, NoTurn, Running};
use crate::company::{Approver, Company, Listener};
use crate::provider::Sampler;

/// What a call comes to for now.
enum Waited {
    Ended(Finished),
    /// It asks for these first.
    Asks(Map<String, Value>),
    /// Its client has taken it back.
    Canceled,
}

impl Talk {
    /// Serves `tools/call`. Nothing, if the client has taken the call back.
    pub(super) async fn call(
        &self,
        params: Params,
        client: Client,
        stream: Arc<dyn Sink>,
        canceled: &CancellationToken,
    ) -> Result<Option<Value>, RpcError> {
        let way = Way {
            stream: Arc::clone(&stream),
            token: params.progress_token(),
        };
        let call = call_of(params.name, params.arguments)?;
        let running = if client.revision.era() == Era::Modern {
            let answers = answers(params.input_responses)?;
            match params.request_state {
                Some(state) => Ok(self.comes_back(&state, &call, client, way, answers)?),
                None if answers.is_some() => {
                    let what =
                        "there are `inputResponses`, but no `requestState` that says to what";
                    return Err(RpcError::new(code::INVALID_PARAMS, what));
                }
                None => self.begin(&call, client, way, None)?,
            }
        } else {
            self.begin(&call, client, way, Some(stream))?
        };
        let mut running = match running {
            Ok(running) => running,
            Err(why) => return Ok(Some(refused(&why))),
        };
        running.mark.is_waited_for_by(canceled);
        match running.wait(canceled).await {
            Waited::Ended(finished) => finished.into_result(&call.tool).map(Some),
            Waited::Canceled => Ok(None),
            Waited::Asks(asked) => {
                // Nothing is reported after the answer.
                running.reporter.close();
                let handle = self.shared.parking.park(call, running)?;
                Ok(Some(input_required(&asked, &handle)))
            }
        }
    }

    /// Begins a turn, which asks by requests on this stream if one is given. An error within is for
    /// the model.
    fn begin(
        &self,
        call: &Call,
        client: Client,
        way: Way,
        stream: Option<Arc<dyn Sink>>,
    ) -> Result<Result<Running, String>, RpcError> {
        let wanted = wanted(call).map_err(|why| RpcError::new(code::INVALID_PARAMS, why))?;
        let interrupt = self.connection.child_token();
        let reporter = Arc::new(Reporter::new(way));
        let caller = Arc::new(Caller::new(client));
        let (asker, questions) = if let Some(stream) = stream {
            let pending = Arc::clone(&self.pending);
            (Asker::Requests { pending, stream }, None)
        } else {
            let questions = Arc::new(Questions::default());
            (Asker::Results(Arc::clone(&questions)), Some(questions))
        };
        let person = Arc::new(Person {
            asker,
            caller: Arc::clone(&caller),
            reporter: Arc::clone(&reporter),
            interrupt: interrupt.clone(),
        });
        let sampler: Arc<dyn Sampler> = Arc::clone(&person) as _;
        let company = Company {
            listener: Arc::clone(&reporter) as Arc<dyn Listener>,
            approver: person as Arc<dyn Approver>,
            sampler: client.can.sampling.then_some(sampler),
            interrupt: interrupt.clone(),
        };
        let options = &self.shared.options;
        let mark = self.shared.marks.mark(interrupt.clone());
        let end = self.shared.turns.begin(Job {
            agent: options.agent.clone(),
            owner: options.owner.clone(),
            setup: Arc::clone(&options.setup),
            wanted,
            ceiling: self.ceiling(),
            company,
            reporter: Arc::clone(&reporter),
            allowances: Arc::clone(&self.shared.allowances),
            parking: Arc::clone(&self.shared.parking),
            marks: Arc::clone(&self.shared.marks),
            mark: Arc::clone(&mark),
        });
        match end {
            Ok(end) => Ok(Ok(Running {
                interrupt,
                end,
                reporter,
                caller,
                questions,
                mark,
            })),
            Err(NoTurn::TooMany(most)) => Ok(Err(format!(
                "{most} conversations are going on already, and more are not held at once. Try again \
                 when one of them is done."
            ))),
            Err(NoTurn::Ending) => {
                let what = "the server is ending";
                Err(RpcError::new(code::INTERNAL_ERROR, what))
            }
        }
    }

    /// Comes back to a turn, with answers.
    fn comes_back(
        &self,
        state: &Value,
        call: &Call,
        client: Client,
        way: Way,
        answers: Option<Map<String, Value>>,
    ) -> Result<Running, RpcError> {
        let running = self.shared.parking.take(state, call)?;
        running.caller.is_now(client);
        running.reporter.redirect(way);
        if let Some(questions) = &running.questions {
            questions.answer(answers.unwrap_or_default());
            questions.keep_only(|method| client.can.answers(method));
        }
        Ok(running)
    }
}

impl Running {
    /// Waits for the end of the turn, or for a question. Dropping the future changes nothing; dropping
    /// the turn interrupts it.
    async fn wait(&mut self, canceled: &CancellationToken) -> Waited {
        let reporter = Arc::clone(&self.reporter);
        let mut alive = pin!(reporter.keep_alive());
        let questions = self.questions.clone();
        loop {
            if let Some(asked) = questions.as_ref().and_then(|open| open.to_requests()) {
                return Waited::Asks(asked);
            }
            tokio::select! {
                biased;
                end = &mut self.end => return Waited::Ended(end_of(end)),
                () = canceled.cancelled() => {
                    self.reporter.close();
                    self.interrupt.cancel();
                    // What it had begun is gone when it has ended.
                    drop((&mut self.end).await);
                    return Waited::Canceled;
                }
                () = arrived(questions.as_deref()) => {}
                () = &mut alive => {}
            }
        }
    }
}

fn end_of(end: Result<Finished, tokio::sync::oneshot::error::RecvError>) -> Finished {
    end.unwrap_or_else(|_dropped| Finished::Broken {
        id: None,
        why: "the turn was dropped before its end".to_owned(),
    })
}

async fn arrived(questions: Option<&Questions>) {
    match questions {
        Some(questions) => questions.arrived().await,
        None => std::future::pending().await,
    }
}

fn call_of(name: Option<String>, arguments: Option<Value>) -> Result<Call, RpcError> {
    let Some(tool) = name else {
        return Err(RpcError::new(code::INVALID_PARAMS, "no tool is named"));
    };
    if tool != BEGIN && tool != REPLY {
        let shown: String = tool.chars().take(100).collect();
        let what = format!("Unknown tool: {shown}");
        return Err(RpcError::new(code::INVALID_PARAMS, what));
    }
    let arguments = match arguments {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(members)) => members,
        Some(_) => {
            let what = "`arguments` is no JSON object";
            return Err(RpcError::new(code::INVALID_PARAMS, what));
        }
    };
    Ok(Call { tool, arguments })
}

fn wanted(call: &Call) -> Result<Wanted, String> {
    if call.tool == BEGIN {
        arguments::begin(&call.arguments)
    } else {
        arguments::reply(&call.arguments)
    }
}

fn answers(given: Option<Value>) -> Result<Option<Map<String, Value>>, RpcError> {
    match given {
        None => Ok(None),
        Some(Value::Object(answers)) => Ok(Some(answers)),
        Some(_) => {
            let what = "`inputResponses` is no JSON object";
            Err(RpcError::new(code::INVALID_PARAMS, what))
        }
    }
}
