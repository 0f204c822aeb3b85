//! Attacks on the confinement that need no luck: paths, links, special files, names.

use std::fs;
use std::os::unix::net::UnixListener;

use serde_json::json;

use super::house_tests::{House, RESOLVERS, TOOLS, text};
use super::{Resolver, Root};
use crate::progress::NoProgress;
use crate::workspace::{Permissions, Workspace};

/// All tools refuse a path because it is outside, and nothing happens there.
async fn check_outside(house: &House, path: &str) {
    for tool in TOOLS {
        let output = house.attack(tool, path).await;
        let text = text(&output);
        assert!(
            output.is_error && text.contains("is outside the workspace"),
            "{tool} {path}: {text}"
        );
    }
    house.check_outside();
}

#[tokio::test]
async fn paths_lead_nowhere_outside() {
    for resolver in RESOLVERS {
        let house = House::new(resolver);
        house.file("sub/file.txt", "inside\n");
        let outside = house.outside("file.txt");
        for path in [
            "..",
            "../outside/file.txt",
            "sub/../../outside/file.txt",
            "./sub/.././../outside/file.txt",
            "missing/../../outside/file.txt",
            outside.to_str().unwrap(),
            "/",
            "/etc/passwd",
            "//etc/passwd",
            "/proc/self/root",
            "/proc/self/cwd",
            "/proc/self/cwd/Cargo.toml",
            "/dev/stdin",
        ] {
            check_outside(&house, path).await;
        }
        let sneaky = format!("{}/../outside/file.txt", house.workspace.root().display());
        check_outside(&house, &sneaky).await;
    }
}

#[tokio::test]
async fn absolute_paths_inside_are_fine() {
    for resolver in RESOLVERS {
        let house = House::new(resolver);
        house.file("sub/file.txt", "inside\n");
        let path = house.workspace.root().join("sub/file.txt");
        let output = house.attack("read", path.to_str().unwrap()).await;
        assert_eq!(text(&output), "inside\n");
    }
}

#[tokio::test]
async fn links_lead_nowhere_outside() {
    for resolver in RESOLVERS {
        let house = House::new(resolver);
        let outside = house.outside("");
        house.link(house.outside("file.txt"), "file");
        house.link("../outside/file.txt", "relative");
        house.link(&outside, "directory");
        house.link("../outside", "sub/../relative_directory");
        house.link("..", "up");
        house.link("/", "slash");
        house.link("file", "chain");
        house.link("directory/sub", "through");
        house.link("../../outside/file.txt", "sub/file");
        house.link("/proc/self/root", "magic");
        house.link("/proc/self/cwd", "magic_cwd");
        house.link("/proc/thread-self/root", "magic_thread");
        for path in [
            "file",
            "relative",
            "directory",
            "directory/file.txt",
            "directory/sub/deep/file.txt",
            "relative_directory/file.txt",
            "up",
            "up/outside/file.txt",
            "up/house/up/outside/file.txt",
            "slash/etc/passwd",
            "chain",
            "through/file.txt",
            "sub/file",
            "magic",
            "magic/etc/passwd",
            "magic_cwd",
            "magic_thread/etc/passwd",
        ] {
            check_outside(&house, path).await;
        }
    }
}

#[tokio::test]
async fn nothing_tells_whether_the_target_of_a_link_exists() {
    for resolver in RESOLVERS {
        let house = House::new(resolver);
        house.link("../outside/file.txt", "real");
        house.link("../outside/none.txt", "gone");
        for tool in TOOLS {
            let real = house.attack(tool, "real").await;
            let gone = house.attack(tool, "gone").await;
            assert_eq!(text(&real).replace("real", "gone"), text(&gone));
        }
    }
}

#[tokio::test]
async fn dangling_links_make_nothing_outside() {
    for resolver in RESOLVERS {
        let house = House::new(resolver);
        house.link("../outside/new.txt", "file");
        house.link("../outside/new", "directory");
        house.link(house.base().join("beside"), "beside");
        for path in ["file", "directory/a/b.txt", "beside", "beside/a.txt"] {
            let output = house.attack("write", path).await;
            assert!(
                text(&output).contains("outside the workspace"),
                "{output:?}"
            );
        }
        house.check_outside();
    }
}

#[tokio::test]
async fn links_that_stay_inside_are_followed() {
    for resolver in RESOLVERS {
        let house = House::new(resolver);
        house.file("sub/deep/file.txt", "inside\n");
        let root = house.workspace.root().to_owned();
        house.link("sub/deep/file.txt", "relative");
        house.link(root.join("sub/deep/file.txt"), "absolute");
        house.link("../sub/deep", "other/directory");
        house.link("..", "sub/up");
        house.link("other/../relative", "winding");
        house.link(".", "self");
        for path in [
            "relative",
            "absolute",
            "other/directory/file.txt",
            "sub/up/relative",
            "winding",
            "self/self/relative",
            "sub/up/sub/up/other/directory/file.txt",
        ] {
            assert_eq!(
                text(&house.attack("read", path).await),
                "inside\n",
                "{path}"
            );
        }
        // The file is changed where it is; the link stays a link.
        let output = house.attack("edit", "absolute").await;
        assert_eq!(text(&output), "edited sub/deep/file.txt (1 replacement)");
        assert!(
            fs::symlink_metadata(house.inside("absolute"))
                .unwrap()
                .is_symlink()
        );
        assert_eq!(
            fs::read(house.inside("sub/deep/file.txt")).unwrap(),
            b"inside!\n"
        );
        let output = house.attack("write", "other/directory/new/file.txt").await;
        assert_eq!(text(&output), "created sub/deep/new/file.txt (7 bytes)");
        let output = house.attack("write", "sub/up").await;
        assert_eq!(text(&output), "cannot write `sub/up`: it is a directory");
    }
}

#[tokio::test]
async fn links_in_circles_are_refused() {
    for resolver in RESOLVERS {
        let house = House::new(resolver);
        house.link("b", "a");
        house.link("a", "b");
        house.link("self/x", "self");
        for path in ["a", "a/x", "self"] {
            for tool in TOOLS {
                let output = house.attack(tool, path).await;
                assert!(
                    output.is_error && text(&output).ends_with("too many symbolic links"),
                    "{tool} {path}: {output:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn searches_do_not_go_through_links() {
    for resolver in RESOLVERS {
        let house = House::new(resolver);
        house.file("sub/file.txt", "inside\n");
        house.link("../outside", "out");
        house.link("../../outside/file.txt", "sub/out.txt");
        house.link("..", "sub/up");
        house.link("../outside/file.txt", ".gitignore");
        let output = house.attack("find", ".").await;
        assert_eq!(
            text(&output),
            ".gitignore\nout\nsub\nsub/file.txt\nsub/out.txt\nsub/up\n"
        );
        let output = house.attack("grep", ".").await;
        assert_eq!(text(&output), "sub/file.txt:1:inside\n");
        house.attack("list", ".").await;
    }
}

#[tokio::test]
async fn special_files_are_neither_opened_nor_waited_for() {
    for resolver in RESOLVERS {
        let house = House::new(resolver);
        house.named_pipe("pipe").await;
        let _listener = UnixListener::bind(house.inside("socket")).unwrap();
        house.link("pipe", "link");
        house.file("file.txt", "inside\n");
        for tool in TOOLS {
            for (path, kind) in [
                ("pipe", "a named pipe"),
                ("link", "a named pipe"),
                ("socket", "a socket"),
            ] {
                let output = house.attack(tool, path).await;
                let expected = format!("`{path}` is {kind}; only files and directories are opened");
                assert_eq!(text(&output), expected, "{tool}");
            }
        }
        let output = house.attack("grep", ".").await;
        assert_eq!(text(&output), "file.txt:1:inside\n");
        // A rules file that is a pipe does not hold a search up either.
        house.named_pipe(".gitignore").await;
        let output = house.attack("grep", ".").await;
        assert_eq!(text(&output), "file.txt:1:inside\n");
    }
}

/// Opens a directory of the system itself as a workspace, to read only.
#[cfg(target_os = "linux")]
async fn read_in(root: &str, resolver: Resolver, path: &str) -> String {
    let root = Root::open(std::path::Path::new(root), resolver).unwrap();
    let workspace = Workspace::with(root, Permissions::default());
    let output = workspace
        .call("read", &json!({ "path": path }), &NoProgress)
        .await
        .unwrap();
    assert!(output.is_error, "{output:?}");
    text(&output).to_owned()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn magic_links_and_devices_are_refused() {
    for resolver in RESOLVERS {
        for (root, path) in [
            ("/proc/self", "root/etc/passwd"),
            ("/proc/self", "cwd/Cargo.toml"),
            ("/proc/self", "exe"),
            ("/proc", "self/cwd/Cargo.toml"),
            ("/dev", "fd/0"),
        ] {
            let refusal = read_in(root, resolver, path).await;
            assert!(refusal.contains("outside the workspace"), "{refusal}");
        }
        for path in ["null", "zero"] {
            let refusal = read_in("/dev", resolver, path).await;
            assert!(refusal.contains("is a device"), "{refusal}");
        }
    }
}

#[tokio::test]
async fn hard_links_to_files_outside_are_not_written_through() {
    for resolver in RESOLVERS {
        let house = House::new(resolver);
        house.file("own.txt", "inside\n");
        let twin = house.base().join("twin");
        fs::hard_link(house.inside("own.txt"), &twin).unwrap();
        house.attack("edit", "own.txt").await;
        house.attack("write", "own.txt").await;
        assert_eq!(fs::read(house.inside("own.txt")).unwrap(), b"attack\n");
        assert_eq!(fs::read(twin).unwrap(), b"inside\n");
    }
}

#[tokio::test]
async fn names_that_no_system_takes_are_refused() {
    for resolver in RESOLVERS {
        let house = House::new(resolver);
        let long = "n".repeat(256);
        let deep = "d/".repeat(5000);
        for tool in TOOLS {
            for (path, expected) in [
                ("a\0b", "contains a NUL character"),
                (
                    "file.txt\0/../../outside/file.txt",
                    "contains a NUL character",
                ),
                (long.as_str(), "the name is too long"),
                (deep.as_str(), "longer than 4096 bytes"),
            ] {
                let output = house.attack(tool, path).await;
                assert!(
                    output.is_error && text(&output).contains(expected),
                    "{tool}: {output:?}"
                );
            }
        }
        assert_eq!(fs::read_dir(house.inside("")).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn names_that_look_dangerous_are_only_names() {
    for resolver in RESOLVERS {
        let house = House::new(resolver);
        for path in [
            "...", "~", "$HOME", "-rf", "%2e%2e", "a\\..\\b", "a b\n[c]", "…",
        ] {
            house.attack("write", path).await;
            assert_eq!(fs::read(house.inside(path)).unwrap(), b"attack\n", "{path}");
            assert_eq!(text(&house.attack("read", path).await), "attack\n");
        }
        house.check_outside();
    }
}

#[tokio::test]
async fn the_root_may_be_named_by_a_link() {
    for resolver in RESOLVERS {
        let house = House::new(resolver);
        house.file("file.txt", "inside\n");
        let link = house.base().join("link");
        std::os::unix::fs::symlink("house", &link).unwrap();
        let workspace =
            Workspace::with(Root::open(&link, resolver).unwrap(), Permissions::default());
        assert_eq!(workspace.root(), house.workspace.root());
        // From now on the name leads elsewhere, which is nothing to the workspace.
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("outside", &link).unwrap();
        for path in [
            "file.txt".to_owned(),
            format!("{}/file.txt", link.display()),
            format!("{}/file.txt", workspace.root().display()),
        ] {
            let arguments = json!({ "path": path });
            let output = workspace
                .call("read", &arguments, &NoProgress)
                .await
                .unwrap();
            assert_eq!(text(&output), "inside\n");
        }
    }
}

#[tokio::test]
async fn a_root_that_is_moved_stays_the_root() {
    for resolver in RESOLVERS {
        let house = House::new(resolver);
        house.file("file.txt", "inside\n");
        let moved = house.base().join("moved");
        fs::rename(house.inside(""), &moved).unwrap();
        std::os::unix::fs::symlink("outside", house.base().join("house")).unwrap();
        assert_eq!(text(&house.attack("read", "file.txt").await), "inside\n");
        house.attack("write", "new.txt").await;
        assert!(moved.join("new.txt").exists() && !house.outside("new.txt").exists());
    }
}

#[test]
fn only_directories_are_roots() {
    let house = House::new(Resolver::System);
    house.file("file.txt", "");
    for path in ["file.txt", "missing"] {
        let error = Root::open(&house.inside(path), Resolver::System).unwrap_err();
        assert!(
            error.to_string().starts_with("cannot open the workspace"),
            "{error}"
        );
    }
}
