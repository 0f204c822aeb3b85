//! Finds models by what is configured: whose they are, where, what lets us in, and what they can do.

use std::collections::BTreeMap;
use std::sync::Arc;

use cocode_agent::providers::{
    Anthropic, AnthropicOptions, ApiKey, Chat, ChatOptions, ClientModel, ClientModelOptions,
    Responses, ResponsesOptions, Retrying,
};
use cocode_agent::{
    ChoiceError, Chosen, Model, ModelChoice, Price, Provider, Providers, Sampler, Work,
};
use cocode_auth::{CommandSettings, Reference, References};
use cocode_client::{HttpClient, Url};
use cocode_config::{
    ModelSettings, ProviderKind, ProviderSettings, Setting, Settings, expand_secret,
};
use cocode_core::TemplatePart;

use super::known_models;
use crate::environment::Variables;
use crate::error::CliError;
use crate::stores;
use crate::workspace::Workspace;

/// Where to read on.
const HINT: &str = "docs/agent.md shows how providers and models are configured";

/// A provider that is known without any configuration.
struct BuiltIn {
    name: &'static str,
    kind: ProviderKind,
    base_url: &'static str,
    /// The variable that replaces the address, as other tools have it.
    url_variable: &'static str,
    /// The variable with the key; nothing if there need not be one.
    key_variable: Option<&'static str>,
}

const BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        name: "anthropic",
        kind: ProviderKind::Anthropic,
        base_url: "https://api.anthropic.com",
        url_variable: "ANTHROPIC_BASE_URL",
        key_variable: Some("ANTHROPIC_API_KEY"),
    },
    BuiltIn {
        name: "openai",
        kind: ProviderKind::OpenAi,
        base_url: "https://api.openai.com/v1",
        url_variable: "OPENAI_BASE_URL",
        key_variable: Some("OPENAI_API_KEY"),
    },
    BuiltIn {
        name: "ollama",
        kind: ProviderKind::OpenAiCompatible,
        base_url: "http://127.0.0.1:11434/v1",
        url_variable: "OLLAMA_BASE_URL",
        key_variable: None,
    },
    BuiltIn {
        name: "sampling",
        kind: ProviderKind::Sampling,
        base_url: "",
        url_variable: "",
        key_variable: None,
    },
];

/// Models as configuration and environment have them.
#[derive(Debug)]
pub(crate) struct Models {
    provider: Option<Setting<String>>,
    model: Option<Setting<String>>,
    providers: BTreeMap<String, ProviderSettings>,
    /// What models can do, by name.
    known: BTreeMap<String, ModelSettings>,
    variables: Variables,
    references: References,
    http: HttpClient,
}

/// Whom to ask, and how.
#[derive(Debug)]
struct Place {
    name: String,
    kind: ProviderKind,
    base_url: String,
    key: Key,
    /// The model to use where none is named.
    model: Option<String>,
    max_retries: Option<u32>,
    /// Where it is configured, for people.
    from: String,
}

/// Where a key comes from.
#[derive(Debug)]
enum Key {
    Variable(String),
    Reference(String),
    /// None is needed, as far as anybody knows.
    None,
}

impl Models {
    pub(crate) fn new(workspace: &Workspace) -> Result<Self, CliError> {
        let Settings {
            provider,
            model,
            providers,
            models,
            ..
        } = &workspace.config()?.settings;
        let variables = workspace.environment.variables.clone();
        let mut commands = CommandSettings::new(variables.for_servers());
        commands.directory.clone_from(&workspace.places.directory);
        Ok(Self {
            provider: provider.clone(),
            model: model.clone(),
            providers: providers.clone(),
            known: models.clone(),
            references: References::new(stores::secrets(workspace)?, commands),
            http: workspace.admissions()?.http().clone(),
            variables,
        })
    }

    /// Whose model it is to be.
    fn place(
        &self,
        choice: &ModelChoice,
        model: Option<&str>,
        has_sampler: bool,
    ) -> Result<Place, ChoiceError> {
        let of_model = model.and_then(|model| self.known.get(model)?.provider.as_deref());
        let named = choice.provider.as_deref().or(of_model);
        let named = named.or(self.provider.as_ref().map(|setting| setting.value.as_str()));
        if let Some(name) = named {
            return self.named(name);
        }
        if let [(name, _)] = self.providers.iter().collect::<Vec<_>>().as_slice() {
            return self.named(name);
        }
        let has_key = |built_in: &&BuiltIn| {
            let key = built_in
                .key_variable
                .and_then(|name| self.variables.text(name));
            key.is_some_and(|key| !key.is_empty())
        };
        let by_key: Vec<&BuiltIn> = BUILT_IN.iter().filter(has_key).collect();
        let by_name = by_key.iter().find(|built_in| match built_in.kind {
            ProviderKind::Anthropic => model.is_some_and(|model| model.starts_with("claude")),
            _ => model.is_some_and(|model| !model.starts_with("claude")),
        });
        if let Some(found) = by_name.or(by_key.first()) {
            return Ok(self.built_in(found));
        }
        if has_sampler {
            return self.named("sampling");
        }
        Err(no_provider(self.providers.keys()))
    }

    fn named(&self, name: &str) -> Result<Place, ChoiceError> {
        if let Some(settings) = self.providers.get(name) {
            return Ok(configured(name, settings));
        }
        let built_in = BUILT_IN.iter().find(|built_in| built_in.name == name);
        if let Some(built_in) = built_in {
            return Ok(self.built_in(built_in));
        }
        let known = self.providers.keys().map(String::as_str);
        let known: Vec<&str> = known
            .chain(BUILT_IN.iter().map(|known| known.name))
            .collect();
        let near = cocode_core::nearest(name, known.iter().copied());
        let near = near.first().map(|near| format!("; did you mean `{near}`?"));
        Err(ChoiceError {
            message: format!("there is no provider `{name}`{}", near.unwrap_or_default()),
            hints: vec![
                format!("known are: {}", known.join(", ")),
                format!("`[providers.{name}]` in config.toml makes one"),
                "`cocode config check` says if one is written, and cannot be used".to_owned(),
            ],
        })
    }

    fn built_in(&self, built_in: &BuiltIn) -> Place {
        let given = self.variables.text(built_in.url_variable);
        let given = given.filter(|url| !url.trim().is_empty());
        Place {
            name: built_in.name.to_owned(),
            kind: built_in.kind,
            base_url: given.unwrap_or_else(|| built_in.base_url.to_owned()),
            key: match built_in.key_variable {
                Some(name) => Key::Variable(name.to_owned()),
                None => Key::None,
            },
            model: None,
            max_retries: None,
            from: "built in".to_owned(),
        }
    }

    /// What lets us in.
    async fn key(&self, place: &Place) -> Result<Option<ApiKey>, ChoiceError> {
        let text = match &place.key {
            Key::None => return Ok(None),
            Key::Variable(name) => {
                let value = self.variables.text(name).filter(|value| !value.is_empty());
                value.ok_or_else(|| no_key(place, name))?
            }
            Key::Reference(text) => self.resolved(place, text).await?,
        };
        let key = ApiKey::new(&text).map_err(|error| wrong(place, "key", &error.to_string()))?;
        Ok(Some(key))
    }

    async fn resolved(&self, place: &Place, text: &str) -> Result<String, ChoiceError> {
        let template = expand_secret(text, &|name: &str| self.variables.text(name));
        let template = template.map_err(|error| wrong(place, "api_key", &error.to_string()))?;
        let mut key = String::new();
        for part in template.parts {
            let reference = match part {
                TemplatePart::Literal(text) => {
                    key.push_str(&text);
                    continue;
                }
                TemplatePart::Keyring(name) => name
                    .parse()
                    .map(Reference::Keyring)
                    .map_err(|error| wrong(place, "api_key", &cocode_wire::chain(&error)))?,
                TemplatePart::Command(line) => Reference::Command(line),
            };
            let secret = self.references.resolve(&reference).await;
            let secret =
                secret.map_err(|error| wrong(place, "api_key", &cocode_wire::chain(&error)))?;
            key.push_str(secret.expose());
        }
        Ok(key)
    }

    /// What is known of a model.
    fn model(&self, name: &str, kind: ProviderKind) -> Model {
        let mut model = known_models::model(name, kind);
        let Some(settings) = self.known.get(name) else {
            return model;
        };
        let ModelSettings {
            from: _,
            provider: _,
            context_window,
            max_output_tokens,
            vision,
            tools,
            input_price,
            output_price,
            cache_read_price,
            cache_write_price,
        } = settings;
        model.context_window = context_window.unwrap_or(model.context_window);
        model.max_output_tokens = max_output_tokens.or(model.max_output_tokens);
        model.vision = vision.unwrap_or(model.vision);
        model.tools = tools.unwrap_or(model.tools);
        if let (Some(input), Some(output)) = (*input_price, *output_price) {
            model.price = Some(Price {
                input,
                output,
                cache_read: *cache_read_price,
                cache_write: *cache_write_price,
            });
        }
        model
    }

    async fn chosen(
        &self,
        choice: &ModelChoice,
        sampler: Option<Arc<dyn Sampler>>,
    ) -> Result<Chosen, ChoiceError> {
        let wished = choice.model.as_deref();
        let usual = self.model.as_ref().map(|setting| setting.value.as_str());
        let place = self.place(choice, wished.or(usual), sampler.is_some())?;
        // The usual model is one of the usual provider.
        let usual = usual.filter(|model| {
            let of = self
                .known
                .get(*model)
                .and_then(|model| model.provider.as_deref());
            let usual_provider = self.provider.as_ref().map(|setting| setting.value.as_str());
            of.or(usual_provider)
                .is_none_or(|provider| provider == place.name)
        });
        let own = place.model.clone();
        let own = own.as_deref();
        let name = wished.or(own).or(usual).or(known_models::usual(place.kind));
        if place.kind == ProviderKind::Sampling {
            let Some(sampler) = sampler else {
                return Err(no_sampling());
            };
            let mut model = self.model(name.unwrap_or_default(), place.kind);
            model.tools &= sampler.takes_tools();
            let provider = Arc::new(ClientModel::new(ClientModelOptions {
                name: place.name,
                sampler,
                hints: name.into_iter().map(str::to_owned).collect(),
            }));
            return Ok(Chosen { provider, model });
        }
        let name = name.ok_or_else(|| no_model(&place))?;
        let model = self.model(name, place.kind);
        let provider = self.provider(place, name).await?;
        Ok(Chosen { provider, model })
    }

    async fn provider(&self, place: Place, model: &str) -> Result<Arc<dyn Provider>, ChoiceError> {
        let key = self.key(&place).await?;
        let url = Url::parse(&place.base_url).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or_else(|| {
            let what = format!("`{}` is no address of HTTP", place.base_url);
            wrong(&place, "base_url", &what)
        })?;
        if key.is_some() && url.scheme() == "http" && !is_local(&url) {
            let what = "it is plain http, over which a key is not sent: use https";
            return Err(wrong(&place, "base_url", what));
        }
        let (name, http) = (place.name, self.http.clone());
        let retries = place.max_retries;
        Ok(match place.kind {
            ProviderKind::Anthropic => {
                let options = AnthropicOptions::new(name, url, key, http);
                persistent(Anthropic::new(options), retries)
            }
            ProviderKind::OpenAi => {
                let mut options = ResponsesOptions::new(name, url, key, http);
                if !known_models::thinks(model) {
                    options.reasoning = None;
                }
                persistent(Responses::new(options), retries)
            }
            ProviderKind::OpenAiCompatible | ProviderKind::Sampling => {
                let options = ChatOptions::new(name, url, key, http);
                persistent(Chat::new(options), retries)
            }
        })
    }
}

impl Providers for Models {
    fn choose<'a>(
        &'a self,
        choice: &'a ModelChoice,
        sampler: Option<Arc<dyn Sampler>>,
    ) -> Work<'a, Result<Chosen, ChoiceError>> {
        Box::pin(self.chosen(choice, sampler))
    }
}

fn configured(name: &str, settings: &ProviderSettings) -> Place {
    let ProviderSettings {
        from,
        kind,
        base_url,
        model,
        api_key_env,
        api_key,
        max_retries,
    } = settings;
    let usual = BUILT_IN.iter().find(|built_in| built_in.kind == *kind);
    let is_usual_address = base_url.is_none();
    let key = match (api_key, api_key_env) {
        (Some(reference), _) => Key::Reference(reference.clone()),
        (None, Some(name)) => Key::Variable(name.clone()),
        // The usual key goes to the usual address and to no other.
        (None, None) => match usual.and_then(|usual| usual.key_variable) {
            Some(name) if is_usual_address => Key::Variable(name.to_owned()),
            _ => Key::None,
        },
    };
    let usual = usual.map_or("", |usual| usual.base_url);
    Place {
        name: name.to_owned(),
        kind: *kind,
        base_url: base_url.clone().unwrap_or_else(|| usual.to_owned()),
        key,
        model: model.clone(),
        max_retries: max_retries.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
        from: from.to_string(),
    }
}

/// A provider that is asked again, as often as it is configured.
fn persistent(provider: impl Provider + 'static, retries: Option<u32>) -> Arc<dyn Provider> {
    let retrying = Retrying::new(provider);
    match retries {
        Some(retries) => Arc::new(retrying.with_retries(retries)),
        None => Arc::new(retrying),
    }
}

fn is_local(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let address: Option<std::net::IpAddr> = host.parse().ok();
            address.is_some_and(|address| address.is_loopback())
        }
        None => false,
    }
}

fn no_provider<'a>(configured: impl Iterator<Item = &'a String>) -> ChoiceError {
    let configured: Vec<&str> = configured.map(String::as_str).collect();
    let mut hints = vec![
        "set ANTHROPIC_API_KEY or OPENAI_API_KEY, or configure a provider in config.toml: \
         `[providers.NAME]` with `kind`, `base_url`, `model`"
            .to_owned(),
        "for a model on this machine: `--provider ollama --model NAME`".to_owned(),
        HINT.to_owned(),
    ];
    if !configured.is_empty() {
        let which = format!("choose one with `--provider`: {}", configured.join(", "));
        hints.insert(0, which);
    }
    ChoiceError {
        message: "there is no model to work with: no provider is chosen, and no key is set"
            .to_owned(),
        hints,
    }
}

fn no_sampling() -> ChoiceError {
    ChoiceError {
        message: "the model of the client was to be used, but the client offers no sampling"
            .to_owned(),
        hints: vec!["choose another provider, or a client that offers sampling".to_owned()],
    }
}

fn no_model(place: &Place) -> ChoiceError {
    let name = &place.name;
    ChoiceError {
        message: format!("no model is chosen for the provider `{name}`"),
        hints: vec![
            format!("`--model NAME`, or `model` in `[providers.{name}]` of config.toml"),
            HINT.to_owned(),
        ],
    }
}

fn no_key(place: &Place, variable: &str) -> ChoiceError {
    let name = &place.name;
    ChoiceError {
        message: format!(
            "the provider `{name}` needs a key, and the variable {variable} is not set"
        ),
        hints: vec![
            format!("set {variable}"),
            format!(
                "or keep the key: `cocode secret set {name}`, and `api_key = \"keyring:{name}\"` in \
                 `[providers.{name}]` of config.toml"
            ),
        ],
    }
}

fn wrong(place: &Place, key: &str, what: &str) -> ChoiceError {
    let Place { name, from, .. } = place;
    ChoiceError {
        message: format!("`{key}` of the provider `{name}` ({from}) cannot be used: {what}"),
        hints: vec![HINT.to_owned()],
    }
}
