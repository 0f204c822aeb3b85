//! A conversation with a model that begins at one gateway, and goes on at another.

use std::sync::Arc;

use cocode_agent::providers::{Anthropic, AnthropicOptions, ApiKey};
use cocode_agent::{
    Agent, AgentError, AgentOptions, Block, ChoiceError, Chosen, Company, ConversationId,
    DEFAULT_COMPACT_PERCENT, Ending, Model, ModelChoice, NoApprover, NoListener, NoRules,
    Providers, Record, Sampler, Settings, StoreError, Wanted, Work, text_of,
};
use cocode_testkit::{Gate, ModelFormat, ModelScript, ModelTurn, PostgresPeer, ScriptedModel};
use cocode_wire::{HttpClient, Url};

use super::contract::taken;
use super::store;

/// One model, whatever is asked for.
struct OneModel(Chosen);

impl OneModel {
    fn at(server: &ScriptedModel) -> Self {
        let key = Some(ApiKey::new("sk-test-0123456789").unwrap());
        let url = Url::parse(&server.base_url()).unwrap();
        let options = AnthropicOptions::new("anthropic", url, key, HttpClient::default());
        Self(Chosen {
            provider: Arc::new(Anthropic::new(options)),
            model: Model {
                name: "some-model".into(),
                context_window: 100_000,
                max_output_tokens: None,
                vision: true,
                tools: true,
                price: None,
            },
        })
    }
}

impl Providers for OneModel {
    fn choose<'a>(
        &'a self,
        _choice: &'a ModelChoice,
        _sampler: Option<Arc<dyn Sampler>>,
    ) -> Work<'a, Result<Chosen, ChoiceError>> {
        let chosen = self.0.clone();
        Box::pin(async { Ok(chosen) })
    }
}

/// The agent of a gateway: its own connections to the database, the same model.
#[expect(
    clippy::default_trait_access,
    reason = "types of crates that this one has nothing to do with"
)]
fn agent(address: &str, model: &ScriptedModel) -> Agent {
    Agent::new(AgentOptions {
        store: Arc::new(store(address)),
        providers: Arc::new(OneModel::at(model)),
        manager: None,
        rules: Arc::new(NoRules),
        environment: Vec::new(),
        state_directory: None,
        config_directory: None,
        instructions: None,
        search: Default::default(),
        search_on_list_changed: true,
        always_load: Vec::new(),
        output: Default::default(),
        max_steps: 20,
        compact_percent: DEFAULT_COMPACT_PERCENT,
        tells_date: false,
    })
}

#[expect(
    clippy::default_trait_access,
    reason = "types of crates that this one has nothing to do with"
)]
fn company() -> Company {
    Company {
        listener: Arc::new(NoListener),
        approver: Arc::new(NoApprover),
        sampler: None,
        interrupt: Default::default(),
    }
}

fn said(text: &str) -> Vec<Block> {
    vec![Block::text(text)]
}

#[tokio::test(flavor = "multi_thread")]
async fn system_a_conversation_goes_on_at_another_gateway() {
    let peer = PostgresPeer::start();
    let address = peer.address("cocode");
    let gate = Gate::new();
    let script = ModelScript::new()
        .turn(ModelTurn::new().text("Noted."))
        .turn(ModelTurn::new().text("It was ").hold(&gate).text("42."))
        .turn(ModelTurn::new().text("It was 42."))
        .turn(ModelTurn::new().text("You are welcome."));
    let model = script.start(ModelFormat::Anthropic);
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings {
        cwd: directory.path().to_owned(),
        ..Settings::default()
    };

    let first = agent(&address, &model);
    let question = said("Remember 42.");
    let mut talk = first.begin("ann", settings, &question).await.unwrap();
    let id = talk.id().clone();
    let end = talk.turn(question, &company()).await.unwrap();
    assert_eq!(end.ending, Ending::Done);
    drop(talk);

    // The second turn is in the middle of a reply when the first gateway is gone.
    let second = agent(&address, &model);
    {
        let mut talk = first.resume(&id, Some("ann")).await.unwrap();
        let company = company();
        let mut turn = std::pin::pin!(talk.turn(said("What was it?"), &company));
        let drafted = async {
            while second
                .options()
                .store
                .load(&id)
                .await
                .unwrap()
                .draft
                .is_none()
            {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            end = &mut turn => panic!("{end:?}"),
            () = drafted => {}
        }
        // Until then nobody else has it, and somebody else never.
        let held = second.resume(&id, Some("ann")).await;
        assert!(matches!(held, Err(AgentError::Store(StoreError::Held(_)))));
        nobody_else_has_it(&second, &id).await;
    }
    drop(first);
    gate.open();

    drop(taken(&*second.options().store, &id).await);
    let mut talk = second.resume(&id, Some("ann")).await.unwrap();
    let end = talk.turn(said("Say it again."), &company()).await.unwrap();
    assert_eq!(
        (end.ending, end.text.as_str()),
        (Ending::Done, "It was 42.")
    );
    drop(talk);
    // Whoever was told of the end may go on elsewhere at once.
    let third = agent(&address, &model);
    let mut talk = third.resume(&id, Some("ann")).await.unwrap();
    let end = talk.turn(said("Thanks."), &company()).await.unwrap();
    assert_eq!(end.text, "You are welcome.");
    nobody_else_has_it(&third, &id).await;
    drop(talk);

    model.assert_no_violations();
    all_is_known(&third, &id, &model).await;
}

/// The model was told of everything, at whichever gateway it was said, and everything is kept.
async fn all_is_known(agent: &Agent, id: &ConversationId, model: &ScriptedModel) {
    let last = model.bodies().pop().unwrap()["messages"].to_string();
    for said in [
        "Remember 42.",
        "Noted.",
        "What was it?",
        "Say it again.",
        "Thanks.",
    ] {
        assert!(last.contains(said), "{said}: {last}");
    }
    let stored = agent.options().store.load(id).await.unwrap();
    assert_eq!(stored.summary.turns, 4);
    let broke_off = stored.records.iter().find_map(|(_, record)| match record {
        Record::BrokeOff { content } => Some(text_of(content)),
        _ => None,
    });
    assert_eq!(broke_off.as_deref(), Some("It was "));
}

async fn nobody_else_has_it(agent: &Agent, id: &ConversationId) {
    let foreign = agent.resume(id, Some("bob")).await;
    assert!(matches!(
        foreign,
        Err(AgentError::Store(StoreError::Unknown(_)))
    ));
    let of = |owner: &str| Wanted {
        owner: Some(owner.to_owned()),
        limit: 10,
        offset: 0,
    };
    let store = &agent.options().store;
    assert!(store.list(&of("bob")).await.unwrap().is_empty());
    assert_eq!(store.list(&of("ann")).await.unwrap().len(), 1);
}
