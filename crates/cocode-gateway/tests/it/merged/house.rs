//! A gateway with many servers, and clients that see them as one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cocode_client::{ListCache, ManagerOptions, Protocol, ServerSpec, Session};
use cocode_gateway::{Gateway, View, ViewOptions};
use cocode_testkit::Script;
use cocode_wire::serve::Endpoint;
use serde_json::Value;

use crate::support::{Person, RawClient, Server, Visitors};

/// A gateway with many servers.
pub(crate) struct House {
    pub(crate) servers: Vec<Server>,
    pub(crate) gateway: Gateway,
    pub(crate) view: View,
    visitors: Visitors,
}

impl House {
    /// These servers, each once as a program and once over HTTP, in turns.
    pub(crate) async fn of(scripts: &[(&str, Script)]) -> Self {
        Self::with(scripts, ViewOptions::default(), |_| {}).await
    }

    pub(crate) async fn with(
        scripts: &[(&str, Script)],
        options: ViewOptions,
        adjust: impl Fn(&mut ServerSpec),
    ) -> Self {
        let servers: Vec<_> = scripts
            .iter()
            .enumerate()
            .map(|(number, (_, script))| match number % 2 {
                0 => Server::Stdio(script.clone().stdio()),
                _ => Server::Http(script.clone().http()),
            })
            .collect();
        let specs = servers.iter().zip(scripts).map(|(server, (name, _))| {
            let mut spec = server.spec_as(name);
            adjust(&mut spec);
            spec
        });
        let specs: Vec<_> = specs.collect();
        let gateway = Gateway::new();
        let view = view_of(&gateway, options);
        view.apply(specs).await;
        Self {
            servers,
            gateway,
            view,
            visitors: Visitors::default(),
        }
    }

    /// These servers, all of them over HTTP.
    pub(crate) async fn over_http(scripts: &[(String, Script)]) -> Self {
        let servers: Vec<_> = scripts
            .iter()
            .map(|(_, script)| Server::Http(script.clone().http()))
            .collect();
        let specs = servers.iter().zip(scripts);
        let specs: Vec<_> = specs
            .map(|(server, (name, _))| server.spec_as(name))
            .collect();
        let gateway = Gateway::new();
        let view = view_of(&gateway, ViewOptions::default());
        view.apply(specs).await;
        Self {
            servers,
            gateway,
            view,
            visitors: Visitors::default(),
        }
    }

    /// Another gateway, with a server that there is already.
    pub(crate) async fn again(server: &Server, name: &str, options: ViewOptions) -> Self {
        let gateway = Gateway::new();
        let view = view_of(&gateway, options);
        view.apply([server.spec_as(name)]).await;
        Self {
            servers: Vec::new(),
            gateway,
            view,
            visitors: Visitors::default(),
        }
    }

    /// A client that speaks this, with this person.
    pub(crate) async fn client(&self, protocol: Protocol, person: &Arc<Person>) -> Session {
        self.client_at(self.view.all(), protocol, person).await
    }

    /// The same, at one endpoint.
    pub(crate) async fn client_at(
        &self,
        endpoint: Arc<dyn Endpoint>,
        protocol: Protocol,
        person: &Arc<Person>,
    ) -> Session {
        self.visitors.client(endpoint, protocol, person).await
    }

    /// A client of the newest revision with sessions, whose every byte the test writes itself.
    pub(crate) async fn raw(&self) -> RawClient {
        self.raw_of("2025-11-25").await.0
    }

    /// The same, of this revision, and what it was told in the beginning.
    pub(crate) async fn raw_of(&self, revision: &str) -> (RawClient, Value) {
        self.greeted(self.view.all(), revision).await
    }

    /// A client of one endpoint.
    pub(crate) async fn raw_at(&self, endpoint: Arc<dyn Endpoint>) -> RawClient {
        self.greeted(endpoint, "2025-11-25").await.0
    }

    /// A client of one endpoint and this revision, and what it was told in the beginning.
    pub(crate) async fn greeted(
        &self,
        endpoint: Arc<dyn Endpoint>,
        revision: &str,
    ) -> (RawClient, Value) {
        let none = serde_json::json!({});
        let (client, told) = self.introduced(endpoint, revision, &none).await;
        (client, told["result"].clone())
    }

    /// A client of one endpoint with these capabilities, and what it was answered in the beginning.
    pub(crate) async fn raw_with(
        &self,
        endpoint: Arc<dyn Endpoint>,
        capabilities: &Value,
    ) -> (RawClient, Value) {
        self.introduced(endpoint, "2025-11-25", capabilities).await
    }

    async fn introduced(
        &self,
        endpoint: Arc<dyn Endpoint>,
        revision: &str,
        capabilities: &Value,
    ) -> (RawClient, Value) {
        let mut client = self.visitors.raw(endpoint);
        let hello = serde_json::json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": { "name": "raw", "version": "1" },
        }});
        client.send(&hello.to_string()).await;
        let told = client.json().await;
        (client, told)
    }

    /// A client without a session.
    pub(crate) fn stateless(&self) -> RawClient {
        self.stateless_at(self.view.all())
    }

    /// The same, of one endpoint.
    pub(crate) fn stateless_at(&self, endpoint: Arc<dyn Endpoint>) -> RawClient {
        self.visitors.raw(endpoint)
    }

    /// Another view of the same gateway.
    pub(crate) async fn view_of(&self, specs: impl IntoIterator<Item = ServerSpec>) -> View {
        let view = view_of(&self.gateway, ViewOptions::default());
        view.apply(specs).await;
        view
    }
}

/// Waits until the lists of a server are remembered below a directory.
pub(crate) async fn remembered(server: &Server, name: &str, directory: &Path) {
    let spec = server.spec_as(name);
    let environment = ManagerOptions::with_environment(std::env::vars_os());
    let identity = environment.connector.identity(&spec).unwrap_or_default();
    let identity: Vec<_> = identity.iter().map(String::as_str).collect();
    let key = ListCache::key_for(&spec.fingerprint(), &identity);
    let cache = ListCache::open(directory);
    while cache.load(&key).is_none() {
        tokio::task::yield_now().await;
    }
}

/// A view whose servers have the environment of the test.
fn view_of(gateway: &Gateway, options: ViewOptions) -> View {
    gateway.view(ViewOptions {
        manager: ManagerOptions {
            connector: ManagerOptions::with_environment(std::env::vars_os()).connector,
            ..options.manager
        },
        // Programs start as slowly as the machine is busy.
        first_list_timeout: Duration::from_mins(1),
        ..options
    })
}

/// A request of a session, and its answer as it came.
pub(crate) async fn ask(client: &mut RawClient, method: &str, params: &str) -> String {
    let request = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
    client.send(&request).await;
    loop {
        let line = client.line().await;
        if line.contains(r#""id":7"#) {
            return line;
        }
    }
}

/// The result of a request of a session.
pub(crate) async fn result(client: &mut RawClient, method: &str, params: Value) -> Value {
    let answer = ask(client, method, &params.to_string()).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"].clone()
}

/// The names in a list of tools or prompts, the URIs of resources.
pub(crate) fn keys(list: &Value, key: &str) -> Vec<String> {
    let items = list.as_array().unwrap().iter();
    items
        .map(|item| item[key].as_str().unwrap().to_owned())
        .collect()
}

/// A server with these tools.
pub(crate) fn with_tools(script: Script, names: &[&str]) -> Script {
    let tools: Vec<_> = names
        .iter()
        .map(|name| serde_json::json!({ "name": name, "inputSchema": { "type": "object" } }))
        .collect();
    let tools = serde_json::json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": tools,
    });
    script.on("tools/list").result(tools)
}
