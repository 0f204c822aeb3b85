//! The calls of one reply: who is asked about them, and what becomes of them. What only reads is done
//! side by side; everything else by itself, in the order in which the model wants it.

mod approving;

use std::sync::Arc;
use std::time::Duration;

use cocode_core::{Approval, ApprovalPolicy, Doing};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use super::turn::Halt;
use crate::belt::{Belt, OnProgress, Outcome, Own, Plan};
use crate::company::{Company, Notice};
use crate::content::{Block, ToolCall, ToolResult};
use crate::conversation::Conversation;
use crate::record::{Ending, Record};
use crate::store::{Lease, Store, StoreError};

/// Calls that are made side by side.
const MAX_PARALLEL: usize = 8;
/// Calls that one reply may have; the rest is told to come later.
const MAX_CALLS: usize = 64;

const INTERRUPTED: &str = "Interrupted by the user before it was done.";
const NOT_BEGUN: &str = "Not begun: the user interrupted the turn.";

impl Conversation {
    /// Makes all calls of a reply. Every one of them has a result in the end.
    pub(super) async fn call_all(
        &mut self,
        calls: &[ToolCall],
        company: &Company,
    ) -> Result<Vec<ToolResult>, Halt> {
        let Some((made, mut belt)) = self.belt.take() else {
            return Err(Halt::Ended(Ending::Failed("there are no tools".to_owned())));
        };
        let planned: Vec<(ToolCall, Plan)> = calls
            .iter()
            .enumerate()
            .map(|(place, call)| {
                let plan = if place < MAX_CALLS {
                    belt.plan(call)
                } else {
                    let what = format!("Not called: only {MAX_CALLS} calls are made at once.");
                    Plan::Settled(Outcome::error(what))
                };
                (call.clone(), plan)
            })
            .collect();
        let called = self.call_groups(&belt, &planned, company).await;
        self.belt = Some((made, belt));
        let (records, halt) = called?;
        let results = calls.iter().filter_map(|call| {
            let of = |result: &&ToolResult| result.id == call.id;
            records.iter().find(of).cloned()
        });
        let results = results.collect();
        match halt {
            Some(halt) => Err(halt),
            None => Ok(results),
        }
    }

    async fn call_groups(
        &mut self,
        belt: &Belt,
        planned: &[(ToolCall, Plan)],
        company: &Company,
    ) -> Result<(Vec<ToolResult>, Option<Halt>), Halt> {
        let (mut results, mut halt) = (Vec::new(), None);
        for group in planned.chunk_by(|(_, one), (_, next)| one.is_parallel() && next.is_parallel())
        {
            let store = Arc::clone(&self.agent.options().store);
            let shared = Shared {
                store: &*store,
                lease: &self.lease,
                belt,
                company,
                conversation: self,
                asking: Semaphore::new(1),
                newly_allowed: Mutex::default(),
            };
            let (mut records, allowed) = if halt.is_some() {
                (shared.skip(group).await?, Vec::new())
            } else {
                let stopped = shared.run_group(group).await?;
                halt = stopped.halt;
                (stopped.records, shared.newly_allowed.into_inner())
            };
            self.allowed.extend(allowed);
            for (number, record) in records.drain(..) {
                self.transcript.add(number, &record);
                if let Record::CallEnded {
                    id,
                    content,
                    is_error,
                    ..
                } = record
                {
                    results.push(ToolResult {
                        id,
                        content,
                        is_error,
                    });
                }
            }
        }
        Ok((results, halt))
    }
}

/// What the calls of a group share.
struct Shared<'a> {
    store: &'a dyn Store,
    lease: &'a Lease,
    belt: &'a Belt,
    company: &'a Company,
    conversation: &'a Conversation,
    /// A person is asked one thing at a time.
    asking: Semaphore,
    newly_allowed: Mutex<Vec<String>>,
}

struct Stopped {
    records: Vec<(u64, Record)>,
    halt: Option<Halt>,
}

/// What a person says to a call.
enum Permission {
    Granted,
    Refused(String),
    Stopped,
}

impl Shared<'_> {
    async fn run_group(&self, group: &[(ToolCall, Plan)]) -> Result<Stopped, StoreError> {
        let room = Semaphore::new(MAX_PARALLEL);
        let mut running: FuturesUnordered<_> = group
            .iter()
            .map(|(call, plan)| {
                let room = &room;
                async move {
                    let _place = room.acquire().await;
                    self.one(call, plan).await
                }
            })
            .collect();
        let mut stopped = Stopped {
            records: Vec::new(),
            halt: None,
        };
        while let Some(done) = running.next().await {
            let (records, halt) = done?;
            stopped.records.extend(records);
            stopped.halt = stopped.halt.or(halt);
        }
        stopped.records.sort_by_key(|(number, _)| *number);
        Ok(stopped)
    }

    /// Calls that are not even begun, because the turn is over.
    async fn skip(&self, group: &[(ToolCall, Plan)]) -> Result<Vec<(u64, Record)>, StoreError> {
        let mut records = Vec::new();
        for (call, _) in group {
            let outcome = Outcome::error(NOT_BEGUN);
            records.push(self.ended(call, outcome, Duration::ZERO).await?);
        }
        Ok(records)
    }

    /// One call, from its beginning to its end.
    async fn one(
        &self,
        call: &ToolCall,
        plan: &Plan,
    ) -> Result<(Vec<(u64, Record)>, Option<Halt>), StoreError> {
        let mut records = Vec::new();
        let begun = Record::CallBegun {
            call: call.clone(),
            reads_outside: plan.reads_outside(),
        };
        records.push(self.append(begun).await?);
        self.company.listener.hear(&Notice::CallBegun(call.clone()));
        let started = Instant::now();
        let mut halt = None;
        let outcome = tokio::select! {
            biased;
            () = self.company.interrupt.cancelled() => {
                halt = Some(Halt::Ended(Ending::Interrupted));
                Outcome::error(INTERRUPTED)
            }
            done = self.permitted(call, plan, &mut records) => match done? {
                Ok(outcome) => outcome,
                Err(outcome) => {
                    halt = Some(Halt::Ended(Ending::Interrupted));
                    outcome
                }
            },
        };
        records.push(self.ended(call, outcome, started.elapsed()).await?);
        Ok((records, halt))
    }

    /// Asks if need be, and does it. An error is an outcome that ends the turn.
    async fn permitted(
        &self,
        call: &ToolCall,
        plan: &Plan,
        records: &mut Vec<(u64, Record)>,
    ) -> Result<Result<Outcome, Outcome>, StoreError> {
        let approval = self.approval(plan);
        let permission = match approval.0 {
            Approval::Granted => Permission::Granted,
            Approval::Refused(_) => Permission::Refused(format!(
                "Not called: {}. Nobody is asked about it; go on without it.",
                approval.1
            )),
            Approval::Needed(_) => {
                let question = self.question(call, plan, &approval.1);
                self.ask(question, Some(plan), records).await?
            }
        };
        let outcome = match permission {
            Permission::Granted => self.run(call, plan).await,
            Permission::Refused(why) => return Ok(Ok(Outcome::error(why))),
            Permission::Stopped => {
                return Ok(Err(Outcome::error(
                    "Not called: the user said no, and stopped.",
                )));
            }
        };
        match self.settle_changes(call, plan, outcome, records).await? {
            Ok(outcome) => self.outside_after_all(call, plan, outcome, records).await,
            stopped => Ok(stopped),
        }
    }

    /// What failed because of the sandbox is done again without it, if a person wants that.
    async fn outside_after_all(
        &self,
        call: &ToolCall,
        plan: &Plan,
        outcome: Outcome,
        records: &mut Vec<(u64, Record)>,
    ) -> Result<Result<Outcome, Outcome>, StoreError> {
        let policy = self.conversation.settings().approval;
        let Plan::Own(own) = plan else {
            return Ok(Ok(outcome));
        };
        let (is_wanted, why, doing) = match own.doing {
            Doing::Command => (
                policy == ApprovalPolicy::OnFailure,
                "it failed in the sandbox, and would run again outside of it",
                Doing::UnconfinedCommand,
            ),
            doing => (
                policy != ApprovalPolicy::Never,
                "the file decides what other programs do, and is not written without asking",
                doing,
            ),
        };
        let is_asked = is_wanted && self.company.approver.can_ask();
        if !outcome.was_confined || own.is_let_out || !is_asked {
            return Ok(Ok(outcome));
        }
        let again = Plan::Own(Own {
            doing,
            is_let_out: true,
            ..own.clone()
        });
        if self.is_allowed(&again) {
            return Ok(Ok(self.run(call, &again).await));
        }
        let question = self.question(call, &again, why);
        match self.ask(question, Some(&again), records).await? {
            Permission::Granted => Ok(Ok(self.run(call, &again).await)),
            Permission::Refused(_) => Ok(Ok(outcome)),
            Permission::Stopped => Ok(Err(outcome)),
        }
    }

    async fn run(&self, call: &ToolCall, plan: &Plan) -> Outcome {
        let (id, listener) = (call.id.clone(), Arc::clone(&self.company.listener));
        let on_progress: OnProgress = Arc::new(move |done, total, message| {
            listener.hear(&Notice::CallProgressed {
                id: id.clone(),
                done,
                total,
                message: message.map(str::to_owned),
            });
        });
        self.belt.run(plan, on_progress).await
    }

    async fn ended(
        &self,
        call: &ToolCall,
        outcome: Outcome,
        took: Duration,
    ) -> Result<(u64, Record), StoreError> {
        let Outcome {
            content, is_error, ..
        } = outcome;
        let ended = |content: Vec<Block>, is_error| Record::CallEnded {
            id: call.id.clone(),
            content,
            is_error,
            milliseconds: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        };
        let stored = self.append(ended(content.clone(), is_error)).await;
        let (stored, content, is_error) = match stored {
            // What cannot be kept cannot be shown: the next turn would not have it.
            Err(StoreError::NotStorable { why, .. }) => {
                let what = format!("The result is there, but cannot be kept: {why}. Ask for less.");
                let content = vec![Block::text(what)];
                let stored = self.append(ended(content.clone(), true)).await?;
                (stored, content, true)
            }
            stored => (stored?, content, is_error),
        };
        self.company.listener.hear(&Notice::CallEnded {
            id: call.id.clone(),
            tool: call.name.clone(),
            content,
            is_error,
            took,
        });
        Ok(stored)
    }

    async fn append(&self, record: Record) -> Result<(u64, Record), StoreError> {
        let number = self.store.append(self.lease, &record).await?;
        Ok((number, record))
    }
}
