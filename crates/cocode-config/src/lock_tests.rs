//! What a lock keeps out, and what a write leaves behind.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::mpsc;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_new_file_gets_the_mode_it_is_given() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secret.json");
    write_atomically(&path, b"one", Some(0o600)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"one");
    assert_eq!(mode(&path), 0o600);
    assert_eq!(names(directory.path()), ["secret.json"]);
}

#[test]
fn an_existing_file_keeps_its_mode() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mcp.toml");
    fs::write(&path, "one").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    write_atomically(&path, b"two", Some(0o600)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(mode(&path), 0o640);
}

#[test]
fn a_link_stays_and_its_file_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let dotfiles = directory.path().join("dotfiles");
    fs::create_dir(&dotfiles).unwrap();
    let (file, link) = (dotfiles.join("real"), directory.path().join("link"));
    fs::write(&file, "one").unwrap();
    symlink("dotfiles/real", &link).unwrap();
    write_atomically(&link, b"two", None).unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read(&file).unwrap(), b"two");
    assert_eq!(names(&dotfiles), ["real"]);
}

#[test]
fn a_link_to_nowhere_or_in_a_circle_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    for (name, target) in [("nowhere", "gone"), ("circle", "circle")] {
        let link = directory.path().join(name);
        symlink(target, &link).unwrap();
        let error = write_atomically(&link, b"two", None).unwrap_err();
        assert!(matches!(error, WriteError::BrokenLink { .. }), "{error:?}");
        assert!(error.to_string().contains(name), "{error}");
    }
    assert_eq!(names(directory.path()), ["circle", "nowhere"]);
}

#[test]
fn a_failed_write_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mcp.toml");
    fs::create_dir(&path).unwrap();
    let error = write_atomically(&path, b"two", None).unwrap_err();
    assert!(matches!(error, WriteError::NotAFile { .. }), "{error:?}");
    assert_eq!(names(directory.path()), ["mcp.toml"]);
    let unfinished = directory.path().join(".mcp.toml.new");
    fs::write(&unfinished, "half").unwrap();
    drop(Unfinished(Some(&unfinished)));
    assert_eq!(names(directory.path()), ["mcp.toml"]);
}

#[test]
fn locks_are_made_in_their_own_directory_only() {
    let directory = tempfile::tempdir().unwrap();
    let context = EditContext::new(directory.path().join("state/locks"));
    let file = directory.path().join("project/.mcp.json");
    with_lock(&context, &file, || Ok::<_, LockError>(())).unwrap();
    assert_eq!(names(&directory.path().join("project")), [""; 0]);
    assert_eq!(names(&context.lock_dir).len(), 1);
    assert_eq!(mode(&context.lock_dir), 0o700);
    assert_eq!(mode(&directory.path().join("project")), 0o700);
}

#[test]
fn one_file_has_one_lock_by_whatever_path() {
    let directory = tempfile::tempdir().unwrap();
    let context = EditContext::new(directory.path().join("locks"));
    let (file, link) = (directory.path().join("a"), directory.path().join("b"));
    fs::write(&file, "").unwrap();
    symlink(&file, &link).unwrap();
    let roundabout = directory.path().join("locks/../a");
    fs::create_dir(&context.lock_dir).unwrap();
    let lock = lock_path(&context, &file).unwrap();
    assert_eq!(lock_path(&context, &link).unwrap(), lock);
    assert_eq!(lock_path(&context, &roundabout).unwrap(), lock);
    let other = lock_path(&context, &directory.path().join("c")).unwrap();
    assert_ne!(other, lock);
}

#[test]
fn a_lock_that_is_held_too_long_is_an_error_with_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let mut context = EditContext::new(directory.path().join("locks"));
    context.lock_wait = Duration::ZERO;
    let file = directory.path().join("mcp.toml");
    let inner: Result<(), LockError> = with_lock(&context, &file, || {
        with_lock(&context, &file, || Ok::<_, LockError>(()))
    });
    let error = inner.unwrap_err();
    assert!(matches!(error, LockError::Busy { .. }), "{error:?}");
    assert!(error.to_string().contains("mcp.toml"), "{error}");
    // And is free again afterwards.
    with_lock(&context, &file, || Ok::<_, LockError>(())).unwrap();
}

#[test]
fn a_waiter_gets_the_lock_when_it_is_released() {
    let directory = tempfile::tempdir().unwrap();
    let context = EditContext::new(directory.path().join("locks"));
    let file = directory.path().join("mcp.toml");
    let (is_held, held) = mpsc::channel();
    let (let_go, release) = mpsc::channel::<()>();
    let (context, file) = (&context, &file);
    thread::scope(|scope| {
        scope.spawn(move || {
            with_lock(context, file, || {
                is_held.send(()).unwrap();
                release.recv().unwrap();
                fs::write(file, "first").unwrap();
                Ok::<_, LockError>(())
            })
            .unwrap();
        });
        held.recv().unwrap();
        let waiter = scope.spawn(|| {
            with_lock(context, file, || {
                Ok::<_, LockError>(fs::read(file).unwrap())
            })
            .unwrap()
        });
        let_go.send(()).unwrap();
        assert_eq!(waiter.join().unwrap(), b"first");
    });
}

#[test]
fn an_edit_of_a_tree_stays_in_it_whatever_links_it_has() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, outside) = (directory.path().join("tree"), directory.path().join("own"));
    for made in [&tree, &outside, &tree.join("inside")] {
        fs::create_dir(made).unwrap();
    }
    fs::write(outside.join("file"), "").unwrap();
    fs::write(tree.join("inside/file"), "").unwrap();
    symlink(outside.join("file"), tree.join("out")).unwrap();
    symlink("../own/gone", tree.join("nowhere")).unwrap();
    symlink(&outside, tree.join("folder")).unwrap();
    symlink("inside/file", tree.join("in")).unwrap();
    let context = EditContext::new(directory.path().join("locks")).within(&tree);
    let locked = |file: &str| {
        with_lock(&context, &tree.join(file), || Ok::<_, LockError>(())).map_err(|error| {
            let is_out = matches!(error, LockError::Place(WriteError::LeadsOut { .. }));
            (is_out, error.to_string())
        })
    };
    for file in ["in", "inside/file", "inside/new", "new/folder/file", "new"] {
        assert_eq!(locked(file), Ok(()), "{file}");
    }
    for file in ["out", "folder/file", "folder/new", "folder/new/file"] {
        let (is_out, message) = locked(file).unwrap_err();
        assert!(is_out, "{file}: {message}");
        let named = [tree.join(file), outside.canonicalize().unwrap()];
        for named in named {
            assert!(message.contains(named.to_str().unwrap()), "{message}");
        }
    }
    assert!(!locked("nowhere").unwrap_err().0);
    assert_eq!(names(&outside), ["file"], "nothing was made there");
    // The user's own links are the user's business.
    let anywhere = EditContext::new(directory.path().join("locks"));
    with_lock(&anywhere, &tree.join("out"), || Ok::<_, LockError>(())).unwrap();
}
