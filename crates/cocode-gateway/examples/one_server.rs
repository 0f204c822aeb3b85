//! Serves one MCP server over HTTP: `one_server ADDRESS URL`, or `one_server ADDRESS PROGRAM ARGS…`.
//! The server is at `/mcp/server`.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example tells where it listens, and gives programs its environment"
)]

use std::sync::Arc;

use cocode_client::{ManagerOptions, ServerSpec};
use cocode_gateway::{Gateway, View, ViewOptions};
use cocode_wire::serve::{Endpoint, HttpServer, HttpServerOptions, Site};

struct OneServer(View);

impl Site for OneServer {
    fn endpoint(&self, name: Option<&str>) -> Option<Arc<dyn Endpoint>> {
        self.0.server(name?)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("an address to listen at")?;
    let server = arguments.next().ok_or("a server")?;
    let name = "server".parse()?;
    let spec = if server.contains("://") {
        ServerSpec::remote(name, server)
    } else {
        ServerSpec::program(name, server, arguments)
    };
    let gateway = Gateway::new();
    let view = gateway.view(ViewOptions {
        manager: ManagerOptions::with_environment(std::env::vars_os()),
        ..ViewOptions::default()
    });
    view.apply([spec]).await;
    let site = Arc::new(OneServer(view));
    let options = HttpServerOptions::new(address.parse()?);
    let server = HttpServer::bind(options, site)?;
    println!("http://{}/mcp/server", server.local_addr());
    let ended = async {
        // Without signals, it runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    server.serve(ended).await;
    gateway.finish().await;
    Ok(())
}
