//! One client over standard input and output.

use std::error::Error;
use std::sync::Arc;

use rmcp::ServiceExt as _;
use rmcp::transport::io::stdio_pipes;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};

use crate::era::Era;
use crate::screen::{Screen, Screened};
use crate::server::Fixture;
use crate::shared::Shared;

/// What may be between the screen and rmcp.
const BUFFER_BYTES: usize = 64 * 1024;

pub(crate) async fn serve(shared: Arc<Shared>) -> Result<(), Box<dyn Error>> {
    let (input, output) = stdio_pipes();
    if shared.era == Era::Both {
        Fixture::new(shared)
            .serve((input, output))
            .await?
            .waiting()
            .await?;
        return Ok(());
    }
    let screen = Screen::of_connection(shared.era);
    let (ours, theirs) = tokio::io::duplex(BUFFER_BYTES);
    let server = async {
        let running = Fixture::new(shared).serve(theirs).await?;
        running.waiting().await?;
        Ok::<_, Box<dyn Error>>(())
    };
    let pump = async { pump(screen, input, output, ours).await.map_err(Into::into) };
    tokio::try_join!(server, pump)?;
    Ok(())
}

/// Carries lines between the client and rmcp until the client has no more.
async fn pump(
    mut screen: Screen,
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    server: tokio::io::DuplexStream,
) -> std::io::Result<()> {
    let (answers, mut requests) = tokio::io::split(server);
    let mut answers = BufReader::new(answers).lines();
    let mut input = BufReader::new(input).lines();
    loop {
        tokio::select! {
            line = input.next_line() => {
                let Some(line) = line? else {
                    // rmcp ends when its input does.
                    requests.shutdown().await?;
                    break;
                };
                match look_at(&mut screen, line) {
                    Line::Pass(line) => requests.write_all(line.as_bytes()).await?,
                    Line::Refuse(line) => write(&mut output, line).await?,
                    Line::Drop => {}
                }
            }
            line = answers.next_line() => match line? {
                Some(line) => write(&mut output, line + "\n").await?,
                None => return Ok(()),
            },
        }
    }
    while let Some(line) = answers.next_line().await? {
        write(&mut output, line + "\n").await?;
    }
    Ok(())
}

async fn write(output: &mut (impl AsyncWrite + Unpin), line: String) -> std::io::Result<()> {
    output.write_all(line.as_bytes()).await?;
    output.flush().await
}

/// A line with its end.
enum Line {
    Pass(String),
    Refuse(String),
    Drop,
}

fn look_at(screen: &mut Screen, line: String) -> Line {
    // What is not JSON is for rmcp to refuse.
    let Ok(message) = serde_json::from_str::<Value>(&line) else {
        return Line::Pass(line + "\n");
    };
    match screen.look_at(message) {
        Screened::Pass(message) => Line::Pass(format!("{message}\n")),
        Screened::Refuse(error) => Line::Refuse(format!("{error}\n")),
        Screened::Drop => Line::Drop,
    }
}
