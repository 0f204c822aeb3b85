//! What is noticed, with the system and without it; what is not; and how watching ends.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError, TrySendError, sync_channel};
use std::time::Instant;

use notify::event::{CreateKind, Flag, ModifyKind, RemoveKind};

use super::pace::Rung;
use super::*;

/// How long anything may take on a busy machine before it counts as never.
const NEVER: Duration = Duration::from_mins(1);
const POLLING: Method = Method::Polling(Duration::from_millis(20));

struct Room {
    directory: tempfile::TempDir,
    places: Places,
}

impl Room {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let places = Places {
            system: root.join("system"),
            user: root.join("user"),
            state: root.join("state"),
            directory: Some(root.join("work/deep")),
            explicit: Vec::new(),
        };
        fs::create_dir_all(root.join("user")).unwrap();
        fs::create_dir_all(root.join("work/.git")).unwrap();
        fs::create_dir_all(root.join("work/deep")).unwrap();
        Self { directory, places }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// As careful editors do it.
    fn replace(&self, name: &str, text: &str) {
        let path = self.path(name);
        let other = path.with_extension("new");
        fs::write(&other, text).unwrap();
        fs::rename(other, path).unwrap();
    }

    fn link(&self, name: &str, target: &str) {
        let other = self.path("link.new");
        symlink(target, &other).unwrap();
        fs::rename(other, self.path(name)).unwrap();
    }

    fn watch(&self, method: Method) -> Watched {
        // One call that nobody has seen yet stands for all after it.
        let (sender, calls) = sync_channel(1);
        let on_change = move || match sender.try_send(()) {
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        };
        let watcher = Watcher::start_with(self.places.clone(), method, on_change).unwrap();
        assert_eq!(watcher.polls_because().is_some(), method == POLLING);
        Watched { watcher, calls }
    }
}

struct Watched {
    watcher: Watcher,
    calls: Receiver<()>,
}

impl Watched {
    #[track_caller]
    fn notices(&self, what: &str) {
        assert_eq!(self.calls.recv_timeout(NEVER), Ok(()), "{what}");
    }
}

fn with_both(check: impl Fn(&Room, &Watched) + Sync) {
    let check = &check;
    thread::scope(|scope| {
        for method in [Method::System, POLLING] {
            scope.spawn(move || {
                let room = Room::new();
                room.write("user/mcp.toml", "before");
                check(&room, &room.watch(method));
            });
        }
    });
}

#[test]
fn an_edit_in_place_is_noticed_each_time() {
    with_both(|room, watched| {
        // Of the same length, and perhaps within one tick of the clock of the file system.
        for text in ["after1", "after2", "after3"] {
            room.write("user/mcp.toml", text);
            watched.notices(text);
        }
    });
}

#[test]
fn a_file_put_in_the_place_of_another_is_noticed_each_time() {
    with_both(|room, watched| {
        for text in ["after1", "after2", "after3"] {
            room.replace("user/mcp.toml", text);
            watched.notices(text);
        }
    });
}

#[test]
fn a_file_that_goes_and_comes_back_is_noticed_both_times() {
    with_both(|room, watched| {
        fs::remove_file(room.path("user/mcp.toml")).unwrap();
        watched.notices("gone");
        room.write("user/mcp.toml", "again");
        watched.notices("again");
        fs::remove_dir_all(room.path("user")).unwrap();
        watched.notices("the directory is gone");
        room.write("user/mcp.toml", "anew");
        watched.notices("the directory is there again");
        room.replace("user/mcp.toml", "more");
        watched.notices("a change in the directory that is there again");
    });
}

#[test]
fn every_file_that_appears_later_is_noticed() {
    with_both(|room, watched| {
        for name in [
            "system/policy.toml",
            "system/config.toml",
            "user/config.toml",
            "user/plugins.toml",
            "state/trust.json",
            "work/.mcp.json",
            "work/deep/.mcp.toml",
            "work/deep/.cocode.local.toml",
            "work/.cocode/config.toml",
            "work/.cocode/config.local.toml",
            "system/managed-mcp.toml",
        ] {
            room.write(name, "");
            watched.notices(name);
        }
        fs::create_dir(room.path("work/deep/.git")).unwrap();
        watched.notices("another work tree");
    });
}

#[test]
fn files_of_plugins_are_noticed_as_soon_as_the_plugin_is() {
    with_both(|room, watched| {
        let folder = room.path("plugin");
        room.write(
            "plugin/plugin.json",
            r#"{"mcpServers": "./more/servers.json"}"#,
        );
        let list = format!("[[plugins]]\npath = \"{}\"\n", folder.display());
        room.write("user/plugins.toml", &list);
        watched.notices("the list");
        for name in ["plugin/.mcp.json", "plugin/more/servers.json"] {
            room.write(name, "{}");
            watched.notices(name);
        }
    });
}

#[test]
fn links_are_followed_wherever_they_lead() {
    with_both(|room, watched| {
        room.write("dotfiles/one.toml", "one");
        room.write("dotfiles/two.toml", "two");
        room.link("user/mcp.toml", "../dotfiles/one.toml");
        watched.notices("a link instead of the file");
        room.write("dotfiles/one.toml", "one, changed");
        watched.notices("what is behind the link");
        room.link("user/mcp.toml", "../dotfiles/two.toml");
        watched.notices("another target");
        room.replace("dotfiles/two.toml", "two, changed");
        watched.notices("what is behind it now");
        fs::rename(room.path("user"), room.path("dotfiles/user")).unwrap();
        symlink("dotfiles/user", room.path("user")).unwrap();
        watched.notices("a link instead of the directory");
        room.write("generation/mcp.toml", "another generation");
        room.link("user", "generation");
        watched.notices("another directory");
        room.write("generation/mcp.toml", "another generation, changed");
        watched.notices("what is in it now");
    });
}

#[test]
fn a_storm_of_writes_is_few_changes() {
    const WRITES: usize = 2000;
    let room = Room::new();
    let file = room.path("user/mcp.toml");
    let (sender, calls) = sync_channel(WRITES);
    let seen = file.clone();
    let begin = Instant::now();
    let _watcher = Watcher::start(room.places.clone(), move || {
        sender.send(fs::read_to_string(&seen).unwrap()).unwrap();
    })
    .unwrap();
    for n in 0..WRITES {
        room.replace("user/mcp.toml", &n.to_string());
    }
    let mut n_calls = 0;
    loop {
        n_calls += 1;
        if calls.recv_timeout(NEVER).unwrap() == (WRITES - 1).to_string() {
            break;
        }
    }
    let most = begin.elapsed().as_millis() / PACE.quiet.as_millis() + 1;
    assert!(n_calls <= most, "{n_calls} calls, not {most}");
}

#[test]
fn what_nobody_reads_and_looks_alone_ring_no_bell() {
    let ours: BTreeSet<PathBuf> = ["/d", "/d/mcp.toml"].map(PathBuf::from).into();
    let any = EventKind::Modify(ModifyKind::Any);
    let read = |mode| EventKind::Access(AccessKind::Close(mode));
    for (kind, path, expected) in [
        (any, "/d/mcp.toml", true),
        (EventKind::Create(CreateKind::File), "/d/mcp.toml", true),
        (EventKind::Remove(RemoveKind::Folder), "/d", true),
        (read(AccessMode::Write), "/d/mcp.toml", true),
        (read(AccessMode::Read), "/d/mcp.toml", false),
        (
            EventKind::Access(AccessKind::Open(AccessMode::Any)),
            "/d/mcp.toml",
            false,
        ),
        (any, "/d/mcp.toml.swp", false),
        (any, "/d/other/mcp.toml", false),
    ] {
        let event = Event::new(kind).add_path(PathBuf::from(path));
        assert_eq!(is_relevant(&event, &ours), expected, "{kind:?} {path}");
    }
    let lost = Event::new(EventKind::Other).set_flag(Flag::Rescan);
    assert!(is_relevant(&lost, &ours));
}

#[test]
fn what_is_the_same_again_is_no_change() {
    let room = Room::new();
    room.write("user/mcp.toml", "same");
    let look = || Prints::of(room.places.looked_at());
    let before = look();
    room.replace("user/mcp.toml", "same");
    room.write("user/other.toml", "x");
    assert_eq!(look(), before);
    room.write("user/mcp.toml", "other");
    assert_ne!(look(), before);
}

#[test]
fn bells_are_waited_for_until_they_are_silent_but_not_forever() {
    let first = Instant::now();
    let after = |millis| first + Duration::from_millis(millis);
    for (last, due) in [
        (0, 200),
        (100, 300),
        (1800, 2000),
        (1900, 2000),
        (5000, 2000),
    ] {
        let last = after(last);
        assert_eq!(Rung { first, last }.due(PACE), after(due));
    }
}

#[test]
fn nothing_is_called_and_no_thread_left_after_the_watcher_is_dropped() {
    with_both_methods(|method| {
        let room = Room::new();
        let Watched { watcher, calls } = room.watch(method);
        drop(watcher);
        room.write("user/mcp.toml", "after");
        // The thread has ended, and its end of the channel with it.
        assert_eq!(calls.recv(), Err(RecvError));
    });
}

#[test]
fn a_watcher_may_be_dropped_while_it_calls() {
    let room = Room::new();
    let own = Arc::new(Mutex::new(None::<Watcher>));
    let (sender, calls) = sync_channel(1);
    let slot = Arc::clone(&own);
    let mut held = own.lock().unwrap();
    let watcher = Watcher::start(room.places.clone(), move || {
        drop(slot.lock().unwrap().take());
        sender.send(()).unwrap();
    });
    *held = Some(watcher.unwrap());
    drop(held);
    room.write("user/mcp.toml", "after");
    assert_eq!(calls.recv_timeout(NEVER), Ok(()));
    assert_eq!(
        calls.recv_timeout(NEVER),
        Err(RecvTimeoutError::Disconnected)
    );
}

#[test]
fn the_trail_has_every_link_and_where_what_is_missing_would_begin() {
    let room = Room::new();
    room.write("real/file", "");
    symlink("real", room.path("link")).unwrap();
    symlink("/nowhere/at/all", room.path("real/lost")).unwrap();
    symlink("round", room.path("round")).unwrap();
    let check = |path: &str, spots: &[&Path]| {
        let trail = Trail::of(BTreeSet::from([room.path(path)]));
        let expected: BTreeSet<PathBuf> = spots.iter().map(|spot| (*spot).to_owned()).collect();
        assert_eq!(trail.spots, expected, "{path}");
        let parents = expected.iter().filter_map(|spot| spot.parent());
        let parents: BTreeSet<PathBuf> = parents.map(Path::to_owned).collect();
        assert_eq!(trail.directories, parents, "{path}");
    };
    let at = |path: &str| room.path(path);
    check("real/file", &[&at("real/file")]);
    check("link/file", &[&at("link"), &at("real/file")]);
    check("link/../real/file", &[&at("link"), &at("real/file")]);
    check("none/of/these", &[&at("none")]);
    check("real/file/no", &[&at("real/file")]);
    check(
        "link/lost",
        &[&at("link"), &at("real/lost"), Path::new("/nowhere")],
    );
    check("round", &[&at("round")]);
}

fn with_both_methods(check: impl Fn(Method)) {
    check(Method::System);
    check(POLLING);
}
