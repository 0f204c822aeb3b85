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
use crate::turns::schedule;

const TOOLS: usize = 1000;
/// Cycles of six rounds, see [`crate::turns`].
const CYCLES: usize = 2;
const LISTS: usize = 40;
const MIN_TOOL_BYTES: usize = 600;

/// A raw page costs little more than moving its bytes.
const PAGE: Target = Target::AtMost(1.5);
/// Our decoding is no slower than that of the SDK's types, given the right method.
const TYPED: Target = Target::AtMost(1.0);

pub(super) fn run() -> Result<Findings, Failure> {
    Runtime::TwoWorkers.run(measure())
}

/// The ways to read the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    OurPage,
    LoopPage,
    SharedPage,
    OurTools,
    LoopTools,
    SdkTools,
}

const WAYS: [Way; 6] = [
    Way::OurPage,
    Way::LoopPage,
    Way::SharedPage,
    Way::OurTools,
    Way::LoopTools,
    Way::SdkTools,
];

async fn measure() -> Result<Findings, Failure> {
    let ours = Ours::start(TOOLS).await?.session;
    let mut direct = Direct::start(TOOLS).await?;
    let shared = Shared::start(TOOLS, Writing::BySender).await?;
    let sdk = Sdk::start(TOOLS).await?;

    let mut rounds = Vec::new();
    for turn in schedule(&WAYS, CYCLES) {
        let round = match turn.client {
            Way::OurPage => repeat!(LISTS, our_page(&ours)),
            Way::LoopPage => repeat!(LISTS, direct_page(&mut direct)),
            Way::SharedPage => repeat!(LISTS, shared_page(&shared)),
            Way::OurTools => repeat!(LISTS, our_tools(&ours)),
            Way::LoopTools => repeat!(LISTS, tools_by_method(&mut direct)),
            Way::SdkTools => repeat!(LISTS, sdk_tools(&sdk)),
        };
        if turn.is_counted {
            rounds.push((turn.client, round));
        }
    }
    let series = |way, name| Series::among(&rounds, &way, name, milliseconds);
    let case = |name: &str, ours, against, sdk, target| Case {
        name: format!("list: {TOOLS} tools, {name}"),
        unit: "ms",
        better: Better::Lower,
        ours: series(ours, "cocode"),
        against,
        sdk,
        target: Some(target),
    };
    let pages = vec![
        series(Way::LoopPage, "raw loop"),
        series(Way::SharedPage, "raw, sender writes"),
    ];
    let by_method = vec![series(Way::LoopTools, "raw loop, SDK types")];
    let sdk = Some(series(Way::SdkTools, "SDK"));
    Ok(Findings {
        cases: vec![
            case("raw page", Way::OurPage, pages, None, PAGE),
            case("decoded", Way::OurTools, by_method, sdk, TYPED),
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

fn milliseconds(round: &Round) -> f64 {
    round.median.as_secs_f64() * 1e3
}
