//! Messages as lines on a byte stream, for pipes and unix sockets.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::task::JoinSet;

use crate::breaker::Breaker;
use crate::engine::{Engine, Output, Wire};
use crate::message::Message;
use crate::script::Script;

/// The sending half of a byte stream.
pub(crate) struct LineWire<W>(pub(crate) W);

impl<W: AsyncWrite + Unpin + Send + 'static> Wire for LineWire<W> {
    async fn put(&mut self, output: Output) -> io::Result<()> {
        match output {
            Output::Line(line) => self.0.write_all(format!("{line}\n").as_bytes()).await?,
            Output::Text(text) => self.0.write_all(text.as_bytes()).await?,
            Output::Bytes(bytes) => self.0.write_all(&bytes).await?,
            Output::Fill(bytes) => {
                let block = [b'x'; 8192];
                let mut left = bytes;
                while left > 0 {
                    let part = block.get(..left.min(block.len())).unwrap_or_default();
                    self.0.write_all(part).await?;
                    left -= part.len();
                }
            }
            Output::Close { .. } => panic!("only a WebSocket has close codes"),
        }
        self.0.flush().await
    }
}

/// Serves one byte stream until it ends or the script hangs up. Every line is recorded first.
pub(crate) async fn serve(
    script: &Script,
    run: u32,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    record: impl Fn(&Message),
) {
    let mut tasks = JoinSet::new();
    let engine = Engine::start(
        script,
        run,
        LineWire(output),
        Breaker::default(),
        &mut tasks,
    )
    .await;
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    loop {
        let read = tokio::select! {
            read = input.read_until(b'\n', &mut line) => read,
            () = engine.hung_up.cancelled() => return,
        };
        if !matches!(read, Ok(1..)) {
            return;
        }
        let text = String::from_utf8_lossy(&line);
        let message = Message::parse(run, text.trim_end_matches(['\n', '\r']));
        line.clear();
        record(&message);
        engine.take(&message, &mut tasks).await;
    }
}
