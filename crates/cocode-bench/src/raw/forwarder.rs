//! The least that stands between a client and a server on pipes: `cocode-bench forward threads|tasks
//! N`. It starts the server and passes bytes on as they come, without looking at them.

use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::thread;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;

use super::child::Pipes;
use crate::Failure;

/// Room for one read.
const READ_BYTES: usize = 256 * 1024;

pub(crate) fn serve(arguments: &[String]) -> Result<(), Failure> {
    let [way, n_tools] = arguments else {
        return Err("a forwarder needs its way and the number of tools".into());
    };
    match way.as_str() {
        "threads" => by_threads(n_tools),
        "tasks" => by_tasks(n_tools.parse()?),
        _ => Err(format!("no way `{way}`").into()),
    }
}

/// One thread for each direction, which block.
fn by_threads(n_tools: &str) -> Result<(), Failure> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the yardstick has no guard for its process"
    )]
    let mut child = Command::new(std::env::current_exe()?)
        .args(["serve", n_tools])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(mut to_server), Some(mut from_server)) = (child.stdin.take(), child.stdout.take())
    else {
        return Err("the server has no pipes".into());
    };
    let back = thread::spawn(move || {
        let mut output = std::fs::File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
        copy(&mut from_server, &mut output)
    });
    let mut input = std::fs::File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    copy(&mut input, &mut to_server)?;
    drop(to_server);
    child.wait()?;
    back.join().map_err(|_panic| "a thread has failed")??;
    Ok(())
}

/// Both directions in one thread, which waits for either.
fn by_tasks(n_tools: usize) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async move {
        let Pipes {
            mut child,
            mut stdin,
            mut stdout,
        } = Pipes::start(n_tools)?;
        let input = std::io::stdin().as_fd().try_clone_to_owned()?;
        let output = std::io::stdout().as_fd().try_clone_to_owned()?;
        let mut input = pipe::Receiver::from_file(input.into())?;
        let mut output = pipe::Sender::from_file(output.into())?;
        let forth = async {
            let mut buffer = vec![0; READ_BYTES];
            loop {
                let read = input.read(&mut buffer).await?;
                if read == 0 {
                    return Ok::<(), Failure>(());
                }
                stdin.write_all(&buffer[..read]).await?;
            }
        };
        let back = async {
            let mut buffer = vec![0; READ_BYTES];
            loop {
                let read = stdout.read(&mut buffer).await?;
                if read == 0 {
                    return Ok::<(), Failure>(());
                }
                output.write_all(&buffer[..read]).await?;
            }
        };
        tokio::select! {
            ended = forth => ended?,
            ended = back => ended?,
        }
        child.kill().await?;
        Ok(())
    })
}

fn copy(from: &mut impl std::io::Read, to: &mut impl std::io::Write) -> std::io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..read])?;
    }
}
