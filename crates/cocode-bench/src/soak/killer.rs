//! Kills servers at random, and starts those again that do not start by themselves. Two threads of
//! their own do that, one for programs and one for the farm: on the runtime of ten thousand calls
//! hardly anything would be killed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cocode_client::Manager;
use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};

use super::farm::Farm;
use super::servers::{Fleet, Member};
use crate::Failure;

/// Milliseconds from one kill to the next.
const GAP: std::ops::Range<u64> = 10..250;
/// Milliseconds that a server stays down, most of the time.
const DOWN: std::ops::Range<u64> = 20..1500;
/// And now and then: so long that the manager gives up.
const LONG_DOWN: std::ops::Range<u64> = 4000..6000;
/// How often a server stays down for so long: once in so many kills.
const LONG_ONCE_IN: u8 = 10;

/// Kills by transport.
pub(crate) type Kills = BTreeMap<&'static str, u64>;

/// Kills for so long. Afterward every server is up, or can be started.
pub(crate) async fn rage(
    time: Duration,
    manager: &Manager,
    fleet: &Arc<Fleet>,
    farm: Farm,
    rng: &mut Rng,
) -> Result<(Farm, Kills), Failure> {
    let until = Instant::now() + time;
    let programs = ProgramKiller {
        manager: manager.clone(),
        fleet: Arc::clone(fleet),
        rng: rng.fork(),
    };
    let plants = PlantKiller {
        fleet: Arc::clone(fleet),
        farm,
        rng: rng.fork(),
        down: BTreeMap::new(),
        kills: Kills::new(),
    };
    let programs = tokio::task::spawn_blocking(move || programs.rage(until));
    let plants = tokio::task::spawn_blocking(move || plants.rage(until));
    let mut kills = programs.await?;
    let (farm, others) = plants.await??;
    kills.extend(others);
    Ok((farm, kills))
}

struct ProgramKiller {
    manager: Manager,
    fleet: Arc<Fleet>,
    rng: Rng,
}

impl ProgramKiller {
    fn rage(mut self, until: Instant) -> Kills {
        let all = self.fleet.members();
        let programs: Vec<&Member> = all.iter().filter(|one| one.plant.is_none()).collect();
        let mut kills = Kills::new();
        while Instant::now() < until {
            if let Some(member) = self.rng.choice(&programs)
                && kill(member.pid(&self.manager))
            {
                *kills.entry(member.transport.name()).or_default() += 1;
            }
            thread::sleep(Duration::from_millis(self.rng.u64(GAP)));
        }
        kills
    }
}

/// One that does not run, or has just ended, is no kill.
fn kill(pid: Option<u32>) -> bool {
    let pid = pid.and_then(|pid| Pid::from_raw(pid.cast_signed()));
    pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}

struct PlantKiller {
    fleet: Arc<Fleet>,
    farm: Farm,
    rng: Rng,
    /// Servers that are down, by when they are started again.
    down: BTreeMap<Instant, usize>,
    kills: Kills,
}

impl PlantKiller {
    fn rage(mut self, until: Instant) -> Result<(Farm, Kills), Failure> {
        while Instant::now() < until {
            self.kill_one()?;
            thread::sleep(Duration::from_millis(self.rng.u64(GAP)));
            let now = Instant::now();
            self.raise(|again_at| again_at <= now)?;
        }
        self.raise(|_whenever| true)?;
        Ok((self.farm, self.kills))
    }

    fn kill_one(&mut self) -> Result<(), Failure> {
        let fleet = Arc::clone(&self.fleet);
        let plants = fleet.members().iter().filter_map(|member| {
            let plant = member.plant?;
            let is_up = !self.down.values().any(|down| *down == plant);
            is_up.then_some((plant, member.transport))
        });
        let Some((plant, transport)) = self.rng.choice(plants.collect::<Vec<_>>()) else {
            return Ok(());
        };
        self.farm.kill(plant)?;
        *self.kills.entry(transport.name()).or_default() += 1;
        let range = if self.rng.u8(..LONG_ONCE_IN) == 0 {
            LONG_DOWN
        } else {
            DOWN
        };
        let mut again_at = Instant::now() + Duration::from_millis(self.rng.u64(range));
        while self.down.contains_key(&again_at) {
            again_at += Duration::from_nanos(1);
        }
        self.down.insert(again_at, plant);
        Ok(())
    }

    /// Starts those again whose time has come.
    fn raise(&mut self, has_come: impl Fn(Instant) -> bool) -> Result<(), Failure> {
        while let Some(next) = self.down.first_entry().filter(|next| has_come(*next.key())) {
            self.farm.restart(next.remove())?;
        }
        Ok(())
    }
}
