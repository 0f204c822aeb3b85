//! Files that are broken in every way: each gives an error that says where, and hides nothing else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::room::{Room, about, state};

/// Where a test that was started without rights finds the room.
const ROOM_VARIABLE: &str = "COCODE_TEST_ROOM";
const SECRET: &str = "hunter2-do-not-show";

/// Loads with one broken project file, and gives the first error: its line, and its text.
#[track_caller]
fn broken(name: &str, make: impl FnOnce(&Path)) -> (Option<u32>, String) {
    let room = Room::new();
    room.write("user/mcp.toml", "[mcp_servers.user]\ncommand = \"x\"\n");
    room.write(
        "work/.cocode.local.toml",
        "[mcp_servers.local]\ncommand = \"x\"\n",
    );
    let file = room.root.join("work").join(name);
    make(&file);
    let config = room.load();
    assert_eq!(state(&config, "user"), "ready");
    assert_eq!(state(&config, "local"), "pending");
    let problems = about(&config, &file);
    let all = format!(
        "{problems:#?}
{}",
        joined(&problems)
    );
    assert!(!all.contains(SECRET), "{all}");
    let first = problems
        .first()
        .unwrap_or_else(|| panic!("{name} gives an error"));
    assert!(first.is_error(), "{all}");
    (first.origin.line, first.to_string())
}

fn joined(problems: &[&cocode_config::Problem]) -> String {
    let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

fn written(name: &str, content: impl AsRef<[u8]>) -> (Option<u32>, String) {
    broken(name, |file| fs::write(file, content).unwrap())
}

#[test]
fn bad_syntax_has_a_line_and_shows_nothing_of_the_file() {
    for (name, line, content) in [
        (
            ".mcp.toml",
            3,
            "[mcp_servers.a]\ncommand = \"x\"\nenv = { A = \"SECRET\n",
        ),
        (".mcp.toml", 2, "[mcp_servers.a]\nurl = SECRET\n"),
        (
            ".mcp.toml",
            3,
            "[mcp_servers.a]\r\ncommand = 'x'\r\nenv.A = \"SECRET\" x\r\n",
        ),
        (
            ".mcp.toml",
            3,
            "[mcp_servers.a.env]\nA = \"SECRET\"\nA = \"SECRET\"\n",
        ),
        (".mcp.toml", 1, "\u{feff}SECRET"),
        (
            ".mcp.json",
            2,
            "{\"mcpServers\": {\n\"a\": {\"env\": {\"A\": \"SECRET",
        ),
        (
            ".mcp.json",
            2,
            "{\"mcpServers\": {\"a\": {\r\n\"env\": {\"A\": SECRET}}}}",
        ),
        (
            ".mcp.json",
            1,
            "{\"mcpServers\": {\"a\": {\"env\": {\"A\": \"\\qSECRET\"}}}}",
        ),
        (
            ".mcp.json",
            1,
            "{\"mcpServers\": {\"a\": {\"env\": {\"A\": \"\\uSECRET\"}}}}",
        ),
        (".mcp.json", 1, "'SECRET'"),
    ] {
        let (at, text) = written(name, content.replace("SECRET", SECRET));
        assert_eq!(at, Some(line), "{content:?}: {text}");
    }
}

#[test]
fn a_value_of_the_wrong_type_has_a_line() {
    for (name, line, content) in [
        (".mcp.toml", 1, "mcp_servers = 1\n"),
        (".mcp.toml", 2, "[mcp_servers]\na = 1\n"),
        (
            ".mcp.toml",
            3,
            "[mcp_servers.a]\ncommand = \"x\"\nargs = 'SECRET'\n",
        ),
        (
            ".mcp.toml",
            3,
            "[mcp_servers.a]\ncommand = \"x\"\nenv = ['SECRET']\n",
        ),
        (".mcp.json", 1, "[]"),
        (".mcp.json", 2, "{\n\"mcpServers\": []}"),
        (".mcp.json", 2, "{\"mcpServers\": {\n\"a\": \"SECRET\"}}"),
    ] {
        let (at, text) = written(name, content.replace("SECRET", SECRET));
        assert_eq!(at, Some(line), "{content:?}: {text}");
    }
}

#[test]
fn bytes_that_are_no_text_have_a_line() {
    for (line, content) in [
        (2, b"[mcp_servers.a]\ncommand = \"\0\"\n".as_slice()),
        (2, b"[mcp_servers.a]\ncommand = \"\xff\"\n".as_slice()),
        (1, b"\xff\xfe[\0m\0".as_slice()),
    ] {
        assert_eq!(written(".mcp.toml", content).0, Some(line));
        assert_eq!(written(".mcp.json", content).0, Some(line));
    }
}

#[test]
fn a_huge_file_is_refused() {
    for name in [".mcp.toml", ".mcp.json"] {
        let (_, text) = written(name, vec![b' '; 10 * 1024 * 1024]);
        assert!(text.contains("larger"), "{text}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    for depth in [1_000, 100_000] {
        let lists = "[".repeat(depth);
        let (line, _) = written(".mcp.json", format!("{{\n\"x\": {lists}"));
        assert_eq!(line, Some(2));
        let tables = "{\"a\":".repeat(depth);
        written(".mcp.json", format!("{{\n\"x\": {tables}"));
        written(".mcp.toml", format!("x = {lists}"));
        written(".mcp.toml", format!("x = {}", "{ a = ".repeat(depth)));
        written(".mcp.toml", format!("x{} = 1", ".a".repeat(depth)));
        written(".mcp.toml", format!("[x{}]", ".a".repeat(depth)));
    }
}

#[test]
fn links_that_lead_nowhere_are_said() {
    for name in [".mcp.toml", ".mcp.json"] {
        let (_, text) = broken(name, |file| symlink("nothing", file).unwrap());
        assert!(text.contains("leads nowhere"), "{text}");
        let (_, text) = broken(name, |file| symlink(file, file).unwrap());
        assert!(text.contains("cannot read"), "{text}");
    }
}

#[test]
fn what_is_no_file_is_not_opened() {
    for name in [".mcp.toml", ".mcp.json"] {
        let (_, text) = broken(name, |file| fs::create_dir(file).unwrap());
        assert!(text.contains("not a regular file"), "{text}");
        // Opening it would wait forever.
        let (_, text) = broken(name, |file| {
            let status = Command::new("mkfifo").arg(file).status().unwrap();
            assert!(status.success());
        });
        assert!(text.contains("not a regular file"), "{text}");
        let (_, text) = broken(name, |file| symlink("/dev/zero", file).unwrap());
        assert!(text.contains("not a regular file"), "{text}");
    }
}

/// Run by itself, it looks at nothing. The test below starts it as somebody without rights.
#[test]
fn an_unreadable_file_is_said() {
    let Some(root) = std::env::var_os(ROOM_VARIABLE) else {
        return;
    };
    let root = Path::new(&root);
    let places = cocode_config::Places {
        system: root.join("system"),
        user: root.join("user"),
        state: root.join("state"),
        directory: Some(root.join("work")),
        explicit: Vec::new(),
    };
    let config = cocode_config::Config::load(&places, &|_| None);
    assert_eq!(state(&config, "user"), "ready");
    let problems = about(&config, &root.join("work/.mcp.toml"));
    let problem = problems.first().unwrap();
    assert!(problem.is_error());
    assert!(problem.message.contains("ermission denied"), "{problem}");
    assert_eq!(
        problem.hint.as_deref(),
        Some("make it readable for you; servers in this file are missing until it is mended")
    );
}

/// Root reads everything, so the load is done by nobody.
#[test]
fn system_an_unreadable_file_hides_nothing_else() {
    use std::os::unix::fs::PermissionsExt as _;
    let room = Room::new();
    room.write("user/mcp.toml", "[mcp_servers.user]\ncommand = \"x\"\n");
    let file = room.write("work/.mcp.toml", "[mcp_servers.a]\ncommand = \"x\"\n");
    let mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(&room.root, 0o755);
    mode(&file, 0);
    // The test may be built where nobody may look.
    let program = room.root.join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    mode(&program, 0o755);
    let is_root = fs::read(&file).is_ok();
    let mut command = if is_root {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(&program);
        command
    } else {
        Command::new(&program)
    };
    command.args(["--exact", "broken_files::an_unreadable_file_is_said"]);
    command.env(ROOM_VARIABLE, &room.root).current_dir("/");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn marks_and_line_ends_of_windows_are_understood() {
    let room = Room::new();
    room.write(
        "work/.mcp.toml",
        "\u{feff}[mcp_servers.a]\r\ncommand = \"x\"\r\nargz = []\r\n",
    );
    let json =
        "\u{feff}{\r\n\"mcpServers\": {\r\n\"b\": {\"command\": \"x\",\r\n\"args\": 1}}}\r\n";
    room.write("work/.mcp.json", json);
    let config = room.load();
    for (name, line) in [("a", 3), ("b", 4)] {
        let server = crate::room::server(&config, name);
        let lines: Vec<_> = server
            .problems()
            .iter()
            .map(|one| one.origin.line)
            .collect();
        assert_eq!(lines, [Some(line)]);
    }
}

#[test]
fn an_empty_file_has_no_servers_and_no_problems() {
    for name in [".mcp.toml", ".mcp.json"] {
        for content in ["", "\n", "\u{feff}"] {
            let room = Room::new();
            room.write(&format!("work/{name}"), content);
            let config = room.load();
            assert!(config.servers.is_empty() && config.all_problems().is_empty());
        }
    }
}

#[test]
fn a_directory_that_is_gone_or_unknown_has_no_project() {
    let mut room = Room::new();
    room.write("user/mcp.toml", "[mcp_servers.user]\ncommand = \"x\"\n");
    room.places.directory = None;
    assert_eq!(state(&room.load(), "user"), "ready");
    room.places.directory = Some(room.root.join("gone/deeper"));
    assert_eq!(state(&room.load(), "user"), "ready");
}
