//! From the start of an agent to its answer to `initialize`, what it holds when it is idle, and whether
//! it answers what it is asked.

use std::time::Duration;

use serde_json::json;

use super::{milliseconds, spreads};
use crate::Failure;
use crate::agents::talk::{Answer, Talk};
use crate::agents::{Agent, Stage};
use crate::report::{Better, Case, Findings, Series, Target};
use crate::turns::schedule;

/// Cycles of six rounds with one start of each agent, see [`crate::turns`].
const CYCLES: usize = 4;
/// How often memory is looked at.
const LOOKS: usize = 3;
/// How long nothing happens before that.
const IDLE: Duration = Duration::from_secs(3);
/// How long an answer may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// What `initialize` may take.
const START_MILLISECONDS: f64 = 20.0;
/// The same beside the 98 ms that `codex mcp-server` took when this was set.
const START_RATIO: f64 = 0.2;
/// What an idle agent may hold.
const RESIDENT_MEBIBYTES: f64 = 25.0;
/// The same beside the 63.5 MB of the other.
const RESIDENT_RATIO: f64 = 0.39;

/// One series for each agent, in their order.
type Each = [Series; 3];

pub(super) async fn measure(stage: &Stage) -> Result<Findings, Failure> {
    let starts = starts(stage).await?;
    let (resident, proportional) = memory(stage).await?;
    let mut notes = vec![
        spreads("start to `initialize` answered, ms", &starts.each_ref()),
        spreads("idle, resident MiB", &resident.each_ref()),
        spreads("idle, proportional MiB", &proportional.each_ref()),
    ];
    let answered = answers(stage, &mut notes).await?;
    let mut cases = vec![
        alone("initialize answered", "ms", &starts, START_MILLISECONDS),
        beside("initialize answered", "ms", starts, Some(START_RATIO)),
        alone("idle, resident", "MiB", &resident, RESIDENT_MEBIBYTES),
        beside("idle, resident", "MiB", resident, Some(RESIDENT_RATIO)),
        beside("idle, proportional", "MiB", proportional, None),
    ];
    cases.push(Case {
        name: "agent: of resources/list and prompts/list, answered".to_owned(),
        unit: "",
        better: Better::Higher,
        ours: Series::of("cocode", answered),
        against: Vec::new(),
        sdk: None,
        target: Some(Target::AtLeast(2.0)),
    });
    Ok(Findings { cases, notes })
}

async fn starts(stage: &Stage) -> Result<Each, Failure> {
    let mut all = Agent::ALL.map(|agent| Series::new(agent.name()));
    for turn in schedule(&Agent::ALL, CYCLES) {
        let (talk, time) = begin(stage, turn.client).await?;
        talk.end().await?;
        if turn.is_counted {
            let series = all.iter_mut().zip(Agent::ALL);
            for (series, _) in series.filter(|(_, agent)| *agent == turn.client) {
                series.push(milliseconds(time));
            }
        }
    }
    Ok(all)
}

/// Resident and proportional memory after `initialize`, `tools/list` and some time.
async fn memory(stage: &Stage) -> Result<(Each, Each), Failure> {
    let mut resident = Agent::ALL.map(|agent| Series::new(agent.name()));
    let mut proportional = resident.clone();
    for _ in 0..LOOKS {
        let agents = Agent::ALL.into_iter();
        for ((agent, resident), proportional) in agents.zip(&mut resident).zip(&mut proportional) {
            let (mut talk, _time) = begin(stage, agent).await?;
            let listed = talk.ask("tools/list", &json!({}), ANSWERS_WITHIN).await?;
            if listed != Answer::Result {
                return Err(format!("{} lists no tools: {listed:?}", agent.name()).into());
            }
            tokio::time::sleep(IDLE).await;
            let memory = talk.memory()?;
            talk.end().await?;
            resident.push(memory.resident);
            proportional.push(memory.proportional);
        }
    }
    Ok((resident, proportional))
}

/// How many of two questions we answer; what all agents say to them is told.
async fn answers(stage: &Stage, notes: &mut Vec<String>) -> Result<f64, Failure> {
    let mut answered_by_us = 0.0;
    for agent in Agent::ALL {
        let (mut talk, _time) = begin(stage, agent).await?;
        let mut said = Vec::new();
        for method in ["resources/list", "prompts/list"] {
            let answer = talk.ask(method, &json!({}), ANSWERS_WITHIN).await?;
            said.push(format!("{method} {}", answer.shown()));
            if agent == Agent::Cocode && answer == Answer::Result {
                answered_by_us += 1.0;
            }
        }
        talk.end().await?;
        let within = ANSWERS_WITHIN.as_secs();
        let (name, said) = (agent.name(), said.join(", "));
        notes.push(format!("agent: {name} within {within} s: {said}"));
    }
    Ok(answered_by_us)
}

async fn begin(stage: &Stage, agent: Agent) -> Result<(Talk, Duration), Failure> {
    let begun = Talk::start(&mut stage.server(agent)).await;
    begun.map_err(|failure| format!("{} does not start: {failure}", agent.name()).into())
}

/// Our own value against a fixed limit.
fn alone(name: &str, unit: &'static str, each: &Each, limit: f64) -> Case {
    let [ours, ..] = each.clone();
    Case {
        name: format!("agent: {name}"),
        unit,
        better: Better::Lower,
        ours,
        against: Vec::new(),
        sdk: None,
        target: Some(Target::AtMost(limit)),
    }
}

/// Our own value beside the better one of the others.
fn beside(name: &str, unit: &'static str, each: Each, limit: Option<f64>) -> Case {
    let [ours, claude, codex] = each;
    Case {
        name: format!("agent: {name}, beside other agents"),
        unit,
        better: Better::Lower,
        ours,
        against: vec![claude, codex],
        sdk: None,
        target: limit.map(Target::AtMost),
    }
}
