//! Forty processes find that the same token has ended: one renews it for all, whoever of them is
//! killed, and at whatever point.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cocode_auth::oauth::Vault;
use cocode_auth::{StoreChoice, StoreOptions};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Finished, start};
use crate::oauth_peer::let_end_in;
use crate::sign_in::{NOTES, SignIn};

const N_PROCESSES: usize = 40;
const N_EXPIRIES: u64 = 3;

/// A lock that nobody holds is taken at once; this is for a busy machine.
const LOCK_LIMIT: Duration = Duration::from_secs(5);

const RENEWED: &str = "/tokens/refresh_token/success";

/// A user who is signed in, and whose processes begin with a token that has ended.
struct Crowd {
    signing: SignIn,
}

impl Crowd {
    fn new() -> Self {
        // Each is refused once, however long the others take: nobody asks for another era, or gives
        // up.
        let signing = SignIn::with(
            "protocol = 'legacy'\nstartup_timeout_sec = 120\nconnect_timeout_sec = 120\n",
        );
        signing.login(&[]).with_code(0);
        Self { signing }
    }

    /// Lets the token end, and starts processes that all find out about it, and of which none gets
    /// another one yet.
    fn gather(&self) -> Vec<Child> {
        let peer = &self.signing.peer;
        peer.set(&json!({ "holdRefresh": true }));
        peer.expire();
        let refused = peer.count("/unauthorized/expired");
        let processes: Vec<Child> = (0..N_PROCESSES).map(|_| start(&mut self.call())).collect();
        let least = refused + N_PROCESSES as u64;
        let state = peer.wait_for("/unauthorized/expired", least);
        assert_eq!(state["unauthorized"]["expired"], least);
        processes
    }

    fn gather_and_disperse(&self) -> Vec<Child> {
        let processes = self.gather();
        self.disperse();
        processes
    }

    fn call(&self) -> Command {
        let words = ["mcp", "call", NOTES, "whoami", "--json"];
        self.signing.home.command(words)
    }

    fn disperse(&self) {
        self.signing.peer.set(&json!({ "holdRefresh": false }));
    }

    fn state_directory(&self) -> PathBuf {
        self.signing.home.home().join("state")
    }

    /// The process that renews, by what it wrote into the lock.
    fn renewing(&self) -> u32 {
        let locks = fs::read_dir(self.state_directory().join("locks")).unwrap();
        let locks = locks.map(|entry| entry.unwrap().path());
        let mut locks = locks.filter(|path| path.extension().is_some_and(|end| end == "lock"));
        let text = fs::read_to_string(locks.next().unwrap()).unwrap();
        text.lines().nth(1).unwrap().trim().parse().unwrap()
    }

    /// The credentials, for somebody in a hurry.
    fn vault(&self) -> Vault {
        let options = StoreOptions {
            choice: StoreChoice::File,
            directory: self.state_directory(),
            session_bus: None,
        };
        Vault::with_wait_limit(options, LOCK_LIMIT)
    }

    /// Fails unless the credentials can be changed at once, by anybody.
    fn assert_unlocked(&self) {
        let url = self.signing.peer.mcp().parse().unwrap();
        drop(block_on(self.vault().transaction(&url)).unwrap());
    }

    /// Reads the store without pause, until the end.
    fn watch(&self, ended: &Arc<AtomicBool>) -> thread::JoinHandle<u64> {
        let (path, ended) = (self.signing.credentials_file(), Arc::clone(ended));
        thread::spawn(move || {
            let mut n_reads = 0;
            while !ended.load(Ordering::Relaxed) {
                let bytes = fs::read(&path).unwrap();
                serde_json::from_slice::<Value>(&bytes).unwrap();
                n_reads += 1;
            }
            n_reads
        })
    }
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

fn finish(process: Child) -> Finished {
    Finished::of(process.wait_with_output().unwrap())
}

fn assert_let_in(finished: Finished) {
    let result: Value = serde_json::from_str(&finished.with_code(0).stdout).unwrap();
    assert_eq!(result["structuredContent"]["sub"], "alice");
}

fn kill(process: u32, signal: Signal) {
    let pid = Pid::from_raw(process.cast_signed()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn forty_processes_renew_a_token_once_for_each_time_that_it_ends() {
    let crowd = Crowd::new();
    let peer = &crowd.signing.peer;
    for n_expiries in 1..=N_EXPIRIES {
        let processes = crowd.gather();
        // One stands for all of them.
        assert_eq!(peer.wait_for("/refreshes_held", 1)["refreshes_held"], 1);
        crowd.disperse();
        for process in processes {
            assert_let_in(finish(process));
        }
        let state = peer.state();
        assert_eq!(
            state["tokens"]["refresh_token"],
            json!({ "success": n_expiries })
        );
        assert_eq!(state["refresh_reuse"], 0);
        // What is stored is what is good.
        crowd.signing.whoami();
        assert_eq!(peer.count(RENEWED), n_expiries);
    }
    assert_eq!(peer.count("/authorizations/started"), 1);
    crowd.assert_unlocked();
}

#[test]
fn forty_processes_that_see_the_end_coming_renew_once_too() {
    let crowd = Crowd::new();
    let peer = &crowd.signing.peer;
    // What is stored says so; the server would still take it.
    block_on(let_end_in(&crowd.vault(), peer, 20));
    let refused = peer.state()["unauthorized"].clone();
    let processes: Vec<Child> = (0..N_PROCESSES).map(|_| start(&mut crowd.call())).collect();
    for process in processes {
        assert_let_in(finish(process));
    }
    let state = peer.state();
    assert_eq!(state["tokens"]["refresh_token"], json!({ "success": 1 }));
    assert_eq!(state["unauthorized"], refused);
}

/// What a process that could not be let in must say.
fn assert_asks_for_sign_in(finished: Finished) {
    let error = finished.with_code(4).error();
    assert_eq!(error["code"], "auth-required", "{error}");
    assert_eq!(
        error["hints"][0], "sign in with `cocode mcp login notes`",
        "{error}"
    );
}

#[test]
fn processes_that_are_killed_in_the_midst_of_a_renewal_leave_it_to_the_others() {
    let crowd = Crowd::new();
    let peer = &crowd.signing.peer;
    let ended = Arc::new(AtomicBool::new(false));
    let watcher = crowd.watch(&ended);
    for seed in 0..N_EXPIRIES {
        let mut random = fastrand::Rng::with_seed(seed);
        let (renewed, reused) = (peer.count(RENEWED), peer.count("/refresh_reuse"));
        let processes = crowd.gather();
        let mut killed = BTreeSet::new();
        // Those who renew, one after the other, while the authorization server has their request.
        let n_heirs = random.u64(2..6);
        for n_held in 1..=n_heirs {
            peer.wait_for("/refreshes_held", n_held);
            let process = crowd.renewing();
            kill(process, Signal::KILL);
            killed.insert(process);
        }
        peer.wait_for("/refreshes_held", n_heirs + 1);
        // Some who wait, and then anybody, in the midst of whatever they do.
        let mut victims: Vec<u32> = processes.iter().map(Child::id).collect();
        random.shuffle(&mut victims);
        for (number, process) in victims.into_iter().take(N_PROCESSES / 2).enumerate() {
            if number == N_PROCESSES / 4 {
                crowd.disperse();
            }
            if killed.insert(process) {
                thread::sleep(Duration::from_micros(random.u64(0..20_000)));
                kill(process, Signal::KILL);
            }
        }
        let mut n_survivors = 0;
        let mut refused = Vec::new();
        for process in processes {
            let is_killed = killed.contains(&process.id());
            let finished = finish(process);
            n_survivors += usize::from(!is_killed);
            match finished.code {
                // It was done before it was killed.
                None => assert!(is_killed, "{finished:?}"),
                Some(0) => assert_let_in(finished),
                Some(_) => refused.push(finished),
            }
        }
        assert!(n_survivors >= N_PROCESSES / 4, "{n_survivors}");
        crowd.assert_unlocked();
        // One who had the new tokens and could not store them has used up the old ones. Only then is
        // there nothing left to be let in with.
        if peer.count("/refresh_reuse") == reused {
            assert!(refused.is_empty(), "seed {seed}: {refused:?}");
            assert_eq!(peer.count(RENEWED), renewed + 1, "seed {seed}");
        } else {
            refused.into_iter().for_each(assert_asks_for_sign_in);
            crowd.signing.login(&[]).with_code(0);
        }
        crowd.signing.whoami();
    }
    ended.store(true, Ordering::Relaxed);
    assert!(watcher.join().unwrap() > 0);
}

#[test]
fn a_process_that_is_killed_with_the_new_tokens_in_its_hands_costs_one_sign_in() {
    let crowd = Crowd::new();
    let peer = &crowd.signing.peer;
    let processes = crowd.gather();
    peer.wait_for("/refreshes_held", 1);
    let process = crowd.renewing();
    // It sees nothing of the answer.
    kill(process, Signal::STOP);
    crowd.disperse();
    peer.wait_for(RENEWED, 1);
    kill(process, Signal::KILL);
    for child in processes {
        if child.id() == process {
            assert_eq!(finish(child).code, None);
        } else {
            assert_asks_for_sign_in(finish(child));
        }
    }
    // It was tried once more by one of them, and by nobody after that.
    assert_eq!(
        peer.state()["tokens"]["refresh_token"],
        json!({ "success": 1, "invalid_grant": 1 })
    );
    crowd.assert_unlocked();
    crowd.signing.login(&[]).with_code(0);
    crowd.signing.whoami();
    assert_eq!(peer.count("/registrations/success"), 1);
    for process in crowd.gather_and_disperse() {
        assert_let_in(finish(process));
    }
    assert_eq!(peer.count(RENEWED), 2);
}
