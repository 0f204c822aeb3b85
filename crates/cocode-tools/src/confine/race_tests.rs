//! Attacks on the confinement that need luck: a thread keeps exchanging what is inside for a link
//! to what is outside, while the tools are at work. Whatever they see or write must be inside.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tokio::runtime::Runtime;

use super::house_tests::{House, RESOLVERS};

/// Calls of each tool, at least; more until both what is inside and the link were met.
const MIN_CALLS: usize = 150;

/// Calls after which both must have been met.
const MAX_CALLS: usize = 5_000;

/// Exchanges two names, as fast as it can, until it is told to stop.
fn exchange(names: &(PathBuf, PathBuf), stop: &AtomicBool, n_exchanges: &AtomicU64) {
    while !stop.load(Ordering::Relaxed) {
        renameat_with(CWD, &names.0, CWD, &names.1, RenameFlags::EXCHANGE).unwrap();
        n_exchanges.fetch_add(1, Ordering::Relaxed);
        // Sometimes at once, sometimes after others had their turn: any step can be hit.
        for _ in 0..fastrand::u8(..4) {
            thread::yield_now();
        }
    }
}

/// Makes calls while a name keeps changing between what it is and a link.
fn race(house: &House, name: &str, link: &str, calls: impl Future<Output = ()>) {
    let names = (house.inside(name), house.inside(link));
    let stop = AtomicBool::new(false);
    let n_exchanges = AtomicU64::new(0);
    thread::scope(|scope| {
        // Stops the thread also when an assertion fails.
        let _stop = StopOnDrop(&stop);
        scope.spawn(|| exchange(&names, &stop, &n_exchanges));
        Runtime::new().unwrap().block_on(calls);
    });
    assert!(n_exchanges.load(Ordering::Relaxed) > 0);
    house.check_outside();
}

/// Calls each tool on a path that is sometimes inside and sometimes not.
async fn call_each(house: &House, calls: &[(&str, &str)]) {
    for (tool, path) in calls {
        call_until_both_are_met(house, tool, path).await;
    }
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn call_until_both_are_met(house: &House, tool: &str, path: &str) {
    let (mut n_done, mut n_refused) = (0, 0);
    for n_calls in 0..MAX_CALLS {
        if n_calls >= MIN_CALLS && n_done > 0 && n_refused > 0 {
            return;
        }
        // That nothing forbidden is in the answer is checked by every call.
        if house.attack(tool, path).await.is_error {
            n_refused += 1;
        } else {
            n_done += 1;
        }
    }
    panic!("{tool} {path}: {n_done} done, {n_refused} refused");
}

fn house(resolver: super::Resolver) -> House {
    let house = House::new(resolver);
    for path in [
        "door/file.txt",
        "door/sub/file.txt",
        "door/sub/deep/file.txt",
    ] {
        house.file(path, "inside\n");
    }
    house
}

#[test]
fn a_directory_exchanged_for_a_link_leads_nowhere() {
    for resolver in RESOLVERS {
        let house = house(resolver);
        house.link("../outside", "door.link");
        let calls = [
            ("read", "door/file.txt"),
            ("list", "door"),
            ("list", "door/sub/deep"),
            ("find", "door"),
            ("grep", "door/sub"),
            ("grep", "door/file.txt"),
            ("edit", "door/sub/file.txt"),
            ("write", "door/sub/file.txt"),
            ("write", "door/new.txt"),
            ("write", "door/new/directories/file.txt"),
        ];
        race(&house, "door", "door.link", call_each(&house, &calls));
    }
}

#[test]
fn a_directory_in_the_middle_exchanged_for_a_link_leads_nowhere() {
    for resolver in RESOLVERS {
        let house = house(resolver);
        house.link("../../outside/sub", "door/sub.link");
        let calls = [
            ("read", "door/sub/deep/file.txt"),
            ("find", "door/sub/deep"),
            ("edit", "door/sub/deep/file.txt"),
            ("write", "door/sub/deep/file.txt"),
            ("write", "door/sub/deep/new/file.txt"),
        ];
        race(
            &house,
            "door/sub",
            "door/sub.link",
            call_each(&house, &calls),
        );
    }
}

#[test]
fn a_file_exchanged_for_a_link_is_not_read_or_written_through_it() {
    for resolver in RESOLVERS {
        let house = house(resolver);
        house.link("../../outside/file.txt", "door/file.link");
        let calls = [
            ("read", "door/file.txt"),
            ("grep", "door/file.txt"),
            ("edit", "door/file.txt"),
            ("write", "door/file.txt"),
        ];
        race(
            &house,
            "door/file.txt",
            "door/file.link",
            call_each(&house, &calls),
        );
    }
}

#[test]
fn a_link_that_changes_its_target_leads_nowhere() {
    for resolver in RESOLVERS {
        let house = house(resolver);
        house.link("door", "way");
        house.link("../outside", "way.other");
        let calls = [
            ("read", "way/file.txt"),
            ("list", "way/sub"),
            ("grep", "way"),
            ("edit", "way/file.txt"),
            ("write", "way/new.txt"),
            ("write", "way/new/file.txt"),
        ];
        race(&house, "way", "way.other", call_each(&house, &calls));
    }
}

#[test]
fn searches_from_above_do_not_enter_what_became_a_link() {
    for resolver in RESOLVERS {
        let house = house(resolver);
        house.link("../../outside/sub", "door/sub.link");
        race(&house, "door/sub", "door/sub.link", async {
            for _ in 0..MIN_CALLS {
                assert!(!house.attack("grep", ".").await.is_error);
                assert!(!house.attack("find", ".").await.is_error);
                assert!(!house.attack("list", "door").await.is_error);
            }
        });
    }
}

#[test]
fn searches_from_above_do_not_read_what_became_a_link() {
    for resolver in RESOLVERS {
        let house = house(resolver);
        house.link("../../outside/file.txt", "door/file.link");
        race(&house, "door/file.txt", "door/file.link", async {
            for _ in 0..10 * MIN_CALLS {
                assert!(!house.attack("grep", "door").await.is_error);
            }
        });
    }
}
