//! A gateway in a process of its own (`cocode-bench serve-gateway MARK SETUP`), so that its memory and its
//! processor time can be told from those of its clients.
//!
//! Behind HTTP it says where it listens, answers each line that it is told with what it has at that
//! moment, and ends with its standard input. On its standard streams it serves one client.

pub(crate) mod child;
mod counted;

use std::sync::Arc;

use cocode_client::ManagerOptions;
use cocode_gateway::{Gateway, View, ViewOptions};
use cocode_wire::serve::{Endpoint, HttpServer, HttpServerOptions, LineOptions, Site};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::runtime::{Builder, Handle};

use crate::Failure;
use crate::managed::{environment, ourselves};
use counted::{Alive, Counted};

/// What a gateway is told when it is started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) front: Front,
    pub(crate) threads: Threads,
    /// Names, and the words with which this program is that server.
    pub(crate) servers: Vec<(String, Vec<String>)>,
}

/// What its clients talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Front {
    Http,
    /// The same, and everything that is under way is counted.
    CountedHttp,
    /// One client on the standard streams, which sees the first server alone.
    Lines,
}

/// The threads of its runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Threads {
    One,
    /// As many as there are processors.
    Many,
}

/// What a gateway has at one moment, as far as only the process itself knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inside {
    /// Tasks of the runtime that have not ended.
    pub(crate) tasks: usize,
    /// Clients that are talked to.
    pub(crate) conversations: usize,
    /// Requests that are not answered.
    pub(crate) requests: usize,
}

/// The process itself.
pub(crate) fn serve(arguments: &[String]) -> Result<(), Failure> {
    let setup = arguments.get(2).ok_or("a gateway needs a setup")?;
    let setup: Setup = serde_json::from_str(setup)?;
    let mut builder = match setup.threads {
        Threads::One => Builder::new_current_thread(),
        Threads::Many => Builder::new_multi_thread(),
    };
    let runtime = builder.enable_all().build()?;
    let task = runtime.spawn(run(setup));
    let outcome = runtime.block_on(task)?;
    // A thread may still wait for input.
    runtime.shutdown_background();
    outcome
}

async fn run(setup: Setup) -> Result<(), Failure> {
    let Setup {
        front,
        threads: _,
        servers,
    } = setup;
    let first = servers.first().map(|(name, _)| name.clone());
    let gateway = Gateway::releasing_heap_with(cocode_process::release_free_heap);
    let view = gateway.view(ViewOptions {
        manager: ManagerOptions::with_environment(environment()),
        ..ViewOptions::default()
    });
    let mut specs = Vec::new();
    for (name, words) in &servers {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        specs.push(ourselves(name, &words)?);
    }
    view.apply(specs).await;
    match front {
        Front::Http | Front::CountedHttp => over_http(view, front).await?,
        Front::Lines => {
            let name = first.ok_or("a gateway on lines needs a server")?;
            let endpoint = view.server(&name).ok_or("the server is not served")?;
            let forever = std::future::pending();
            cocode_wire::serve::stdio(&*endpoint, LineOptions::default(), forever).await;
            // An endpoint serves for as long as its view is there.
            drop((endpoint, view));
        }
    }
    gateway.finish().await;
    Ok(())
}

async fn over_http(view: View, front: Front) -> Result<(), Failure> {
    let alive = Arc::new(Alive::default());
    let counted = (front == Front::CountedHttp).then(|| Arc::clone(&alive));
    let site = Arc::new(Served { view, counted });
    let options = HttpServerOptions::new(([127, 0, 0, 1], 0).into());
    let server = HttpServer::bind(options, site)?;
    let mut output = tokio::io::stdout();
    output
        .write_all(format!("{}\n", server.local_addr()).as_bytes())
        .await?;
    output.flush().await?;
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    let told = async {
        while let Ok(Some(_order)) = orders.next_line().await {
            let inside = Inside {
                tasks: Handle::current().metrics().num_alive_tasks(),
                conversations: alive.conversations(),
                requests: alive.requests(),
            };
            let Ok(mut line) = serde_json::to_vec(&inside) else {
                return;
            };
            line.push(b'\n');
            let written = output.write_all(&line).await;
            if written.is_err() || output.flush().await.is_err() {
                return;
            }
        }
    };
    server.serve(told).await;
    Ok(())
}

/// All servers as one, and each by itself.
struct Served {
    view: View,
    counted: Option<Arc<Alive>>,
}

impl Site for Served {
    fn endpoint(&self, name: Option<&str>) -> Option<Arc<dyn Endpoint>> {
        let endpoint = match name {
            Some(name) => self.view.server(name)?,
            None => self.view.all(),
        };
        Some(match &self.counted {
            Some(alive) => Counted::over(endpoint, alive),
            None => endpoint,
        })
    }
}
