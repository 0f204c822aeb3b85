//! `list`: a thousand tools, as a raw page and decoded.

use cocode_client::Session;

use super::Runtime;
use crate::Failure;
use crate::load::{Round, repeat};
use crate::ours::Ours;
use crate::raw::direct::Direct;
use crate::raw::envelope::Message;
use crate::raw::shared::{Shared, Writing};
use crate::report::{Better, Case, Findings, Series, Target};
use crate::sdk::Sdk;

const TOOLS: usize = 1000;
const ROUNDS: usize = 7;
const LISTS: usize = 40;
const MIN_TOOL_BYTES: usize = 600;

/// A raw page costs little more than moving its bytes.
const PAGE: Target = Target::AtMost(1.5);
/// Our decoding is no slower than that of the SDK's types, given the right method.
const TYPED: Target = Target::AtMost(1.0);

pub(super) fn run() -> Result<Findings, Failure> {
    Runtime::TwoWorkers.run(measure())
}

async fn measure() -> Result<Findings, Failure> {
    let ours = Ours::start(TOOLS).await?.session;
    let mut direct = Direct::start(TOOLS).await?;
    let shared = Shared::start(TOOLS, Writing::BySender).await?;
    let sdk = Sdk::start(TOOLS).await?;

    let new = Series::new;
    let (mut page, mut page_direct, mut page_shared) =
        (new("cocode"), new("raw loop"), new("raw, sender writes"));
    let (mut typed, mut by_method, mut whole_sdk) =
        (new("cocode"), new("raw loop, SDK types"), new("SDK"));
    // The first round warms up and is not counted.
    for round in 0..=ROUNDS {
        let ours_page = repeat!(LISTS, our_page(&ours));
        let raw_direct = repeat!(LISTS, direct_page(&mut direct));
        let raw_shared = repeat!(LISTS, shared_page(&shared));
        let ours_typed = repeat!(LISTS, our_tools(&ours));
        let raw_typed = repeat!(LISTS, tools_by_method(&mut direct));
        let sdk_typed = repeat!(LISTS, sdk_tools(&sdk));
        if round == 0 {
            continue;
        }
        page.push(milliseconds(ours_page));
        page_direct.push(milliseconds(raw_direct));
        page_shared.push(milliseconds(raw_shared));
        typed.push(milliseconds(ours_typed));
        by_method.push(milliseconds(raw_typed));
        whole_sdk.push(milliseconds(sdk_typed));
    }
    let case = |name: &str, ours, against, sdk, target| Case {
        name: format!("list: {TOOLS} tools, {name}"),
        unit: "ms",
        better: Better::Lower,
        ours,
        against,
        sdk,
        target: Some(target),
    };
    Ok(Findings {
        cases: vec![
            case("raw page", page, vec![page_direct, page_shared], None, PAGE),
            case("decoded", typed, vec![by_method], Some(whole_sdk), TYPED),
        ],
        notes: Vec::new(),
    })
}

async fn our_page(session: &Session) -> Result<(), Failure> {
    let page = session.page("tools/list", None).await?;
    whole(page.as_bytes())
}

async fn direct_page(client: &mut Direct) -> Result<(), Failure> {
    whole(client.request(Message::List).await?)
}

async fn shared_page(client: &Shared) -> Result<(), Failure> {
    whole(&client.request(Message::List).await?)
}

async fn our_tools(session: &Session) -> Result<(), Failure> {
    all(session.tools().await?.items.len())
}

async fn tools_by_method(client: &mut Direct) -> Result<(), Failure> {
    let page = client.request(Message::List).await?;
    let list: rmcp::model::ListToolsResult = serde_json::from_slice(page)?;
    all(list.tools.len())
}

async fn sdk_tools(sdk: &Sdk) -> Result<(), Failure> {
    all(sdk.list().await?)
}

/// A page is not looked into; its size must be right.
fn whole(page: &[u8]) -> Result<(), Failure> {
    all(page.len() / MIN_TOOL_BYTES)
}

fn all(n_tools: usize) -> Result<(), Failure> {
    if n_tools < TOOLS {
        return Err(format!("{n_tools} tools came back for {TOOLS}").into());
    }
    Ok(())
}

fn milliseconds(round: Round) -> f64 {
    round.median.as_secs_f64() * 1e3
}
