//! A session with a host that has no model: its turns follow a script. Tests drive it in a real
//! terminal, and people can try keys and looks in it: `cargo run -p cocode-terminal --example demo`.

mod host;
mod script;

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use cocode_terminal::{
    Keyboard, Line, Palette, Style, TerminalOptions, leave_raw_mode, restoring_bytes, run,
    standard_output,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use host::Demo;

/// Notices of the host that wait to be shown.
const MAX_NOTICES: usize = 16;

/// Arguments: the file that keeps what was typed, and `mono` for no colors.
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let history = arguments.next().map(PathBuf::from);
    let is_mono = arguments.next().is_some_and(|word| word == "mono");
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let mut terminated = signal(SignalKind::terminate())?;
    let stopping = stop.clone();
    tasks.spawn(async move {
        terminated.recv().await;
        stopping.cancel();
    });
    restore_after_panic();
    let (say, notices) = mpsc::channel(MAX_NOTICES);
    let options = TerminalOptions {
        palette: if is_mono {
            Palette::Mono
        } else {
            Palette::Color
        },
        is_dumb: false,
        history,
        rings: true,
        greeting: vec![Line::new("cocode demo", Style::PLAIN.bold())],
        first: None,
        notices,
        stop,
    };
    let host = Arc::new(Demo::new(say));
    let keyboard = Box::new(Keyboard::open()?);
    run(options, host, keyboard, standard_output()?).await?;
    Ok(())
}

fn restore_after_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        use std::io::Write as _;
        // Nothing more can be done in a panic if this fails.
        let _raw = leave_raw_mode();
        let _modes =
            standard_output().and_then(|mut output| output.write_all(restoring_bytes().as_bytes()));
        usual(panic);
    }));
}
