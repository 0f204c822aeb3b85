//! What a guard costs: time to start and end `true` with and without one, and the memory that a
//! guard holds. Takes the size of the own heap in MiB: `spawn_cost 200`.
#![expect(clippy::print_stdout, reason = "its result is what it prints")]

use std::error::Error;
use std::time::{Duration, Instant};

use cocode_process::{ProcessSpec, spawn};

const ROUNDS: usize = 200;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let mebibytes: usize = std::env::args().nth(1).map_or(Ok(0), |size| size.parse())?;
    let mut heap = vec![1_u8; mebibytes * 1024 * 1024];
    let mut plain = Timings::default();
    let mut guarded = Timings::default();
    // In turns, so that both see the same machine.
    for _ in 0..ROUNDS {
        let started = Instant::now();
        #[expect(clippy::disallowed_methods, reason = "the measure to compare with")]
        let mut child = std::process::Command::new("/bin/true")
            .env_clear()
            .spawn()?;
        plain.spawn.push(started.elapsed());
        child.wait()?;
        plain.whole.push(started.elapsed());

        let started = Instant::now();
        let mut child = spawn(&ProcessSpec::new("/bin/true"))?;
        guarded.spawn.push(started.elapsed());
        child.wait().await;
        guarded.whole.push(started.elapsed());
    }
    println!("median of {ROUNDS}, own heap {mebibytes} MiB");
    println!("plain:   {}", plain.medians());
    println!("guarded: {}", guarded.medians());

    let mut sleeper = ProcessSpec::new("/bin/sleep");
    sleeper.args = vec!["60".into()];
    let mut child = spawn(&sleeper)?;
    // Time for the guard to settle, then pages of our own for all that it could hold.
    tokio::time::sleep(Duration::from_millis(300)).await;
    heap.iter_mut().step_by(4096).for_each(|byte| *byte = 2);
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.pid()))?;
    let guard = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.split(' ').nth(1))
        .unwrap_or("");
    let rollup = std::fs::read_to_string(format!("/proc/{guard}/smaps_rollup"))?;
    let status = std::fs::read_to_string(format!("/proc/{guard}/status"))?;
    for line in rollup.lines().chain(status.lines()) {
        if ["Rss", "Pss:", "Private_", "Shared_", "VmPTE"]
            .iter()
            .any(|key| line.starts_with(key))
        {
            println!("guard {line}");
        }
    }
    child.stop().await;
    Ok(())
}

#[derive(Default)]
struct Timings {
    spawn: Vec<Duration>,
    whole: Vec<Duration>,
}

impl Timings {
    fn medians(mut self) -> String {
        let median = |times: &mut Vec<Duration>| {
            times.sort_unstable();
            times.get(times.len() / 2).copied().unwrap_or_default()
        };
        format!(
            "spawn {:?}, until exit {:?}",
            median(&mut self.spawn),
            median(&mut self.whole)
        )
    }
}
