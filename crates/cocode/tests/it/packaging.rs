//! The files of `packaging/`: that nginx and systemd understand them, that requests find their way through
//! nginx to two gateways, and that a gateway does what its unit relies on.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use cocode_testkit::Script;

use crate::gateway::Running;
use crate::harness::{Finished, Scratch};
use crate::home::Home;
use crate::nginx::{Site, packaging};
use crate::status::entry;

#[test]
fn system_nginx_takes_the_file_for_two_gateways() {
    let site = Site::new(["127.0.0.1:1", "127.0.0.1:2"]);
    let tested = site.command().arg("-t").output().unwrap();
    let said = String::from_utf8_lossy(&tested.stderr);
    assert!(tested.status.success(), "{said}{}", site.read("error.log"));
    assert!(!said.contains("warn"), "{said}");
}

#[test]
fn system_requests_reach_two_gateways_through_nginx_and_go_on_when_one_is_gone() {
    let homes = [Home::new(), Home::new()];
    let servers = [Script::new().stdio(), Script::new().stdio()];
    let mut gateways = Vec::new();
    for (home, server) in homes.iter().zip(&servers) {
        home.user_file("mcp.toml", &entry("one", server));
        let mut gateway = Running::start(home, &[]);
        gateway.until_ready(&["one"]);
        gateways.push(gateway);
    }
    let addresses: Vec<String> = gateways
        .iter()
        .map(|gateway| {
            let address = gateway.url().strip_prefix("http://").unwrap();
            address.strip_suffix("/mcp").unwrap().to_owned()
        })
        .collect();
    let [one, other] = addresses.as_slice() else {
        panic!("{addresses:?}");
    };
    let site = Site::new([one, other]);
    let proxy = site.start();
    let list = |token: usize| {
        let listed = site.client(
            &["tools", "--protocol", "modern"],
            ("https", "/mcp"),
            &token.to_string(),
        );
        let listed = listed.with_code(0).stdout;
        assert!(listed.contains("mcp__one__echo"), "{listed}");
    };
    (0..16).for_each(list);
    let log = site.read("access.log");
    for address in &addresses {
        assert!(log.contains(address.as_str()), "both are asked: {log}");
    }
    // A WebSocket, and what is not for everybody.
    let socket = site
        .client(&["tools"], ("wss", "/ws/one"), "0")
        .with_code(0);
    assert!(socket.stdout.contains("echo"), "{}", socket.stdout);
    site.client(&["ping"], ("https", "/metrics"), "0")
        .with_code(3);
    // Nobody gets the token into the log.
    site.client(&["ping"], ("https", "/mcp?token=hunter2"), "0");
    assert!(!site.read("access.log").contains("hunter2"));
    // One is gone, and everybody goes on at the other.
    let gone = gateways.remove(0);
    assert_eq!(gone.end("-TERM").0, Some(0));
    (0..16).for_each(list);
    drop(proxy);
    assert_eq!(gateways.remove(0).end("-TERM").0, Some(0));
}

#[test]
fn system_systemd_understands_the_unit_and_finds_it_well_shut() {
    let scratch = Scratch::new();
    let program = env!("CARGO_BIN_EXE_cocode");
    let unit = packaging("systemd/cocode-gateway.service");
    let place = "ExecStart=/usr/local/bin/cocode ";
    assert!(unit.contains(place));
    let unit = unit.replace(place, &format!("ExecStart={program} "));
    let file = scratch.file("cocode-gateway.service", &unit);
    let analyze = |words: &[&str]| {
        let output = Command::new("systemd-analyze")
            .args(words)
            .output()
            .unwrap();
        Finished::of(output)
    };
    let verified = analyze(&["verify", &file]).with_code(0);
    assert_eq!(verified.stderr, "");
    let judged = analyze(&["security", "--offline=true", "--no-pager", &file]).with_code(0);
    let last = judged.stdout.lines().last().unwrap();
    let level = last.split(": ").nth(1).unwrap().split(' ').next().unwrap();
    let level: f64 = level.parse().unwrap_or_else(|_| panic!("{last}"));
    assert!(level < 2.0, "{last}");
}

#[test]
fn the_unit_leaves_to_the_configuration_where_to_listen() {
    let unit = packaging("systemd/cocode-gateway.service");
    let lines: Vec<&str> = unit.lines().collect();
    for line in [
        "ExecStart=/usr/local/bin/cocode gateway --json",
        "Type=notify",
        "NotifyAccess=main",
        "WatchdogSec=30s",
    ] {
        assert!(lines.contains(&line), "{line}");
    }
}

#[test]
fn no_gateway_starts_where_it_keeps_what_is_secret() {
    // Where no server is configured, clients may read the directory that the gateway starts in.
    let unit = packaging("systemd/cocode-gateway.service");
    assert!(unit.contains("\nWorkingDirectory=/var/lib/cocode/work\n"));
    let image = packaging("container/Containerfile");
    assert!(image.contains("\nENV COCODE_HOME=/var/lib/cocode "));
    assert!(image.contains("\nWORKDIR /work\n"));
}

/// What the gateway at this address answers to a request for `host`.
fn status(url: &str, host: &str) -> String {
    let address = url.strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/mcp").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn names_of_a_gateway_can_be_written_into_its_configuration() {
    let home = Home::new();
    let names = "[gateway]\nlisten = '127.0.0.1:0'\nallow_hosts = ['written.localhost']\n";
    home.user_file("config.toml", names);
    let words = ["gateway", "--json", "--allow-host", "given.localhost"];
    let gateway = Running::of(&mut home.command(words));
    for (host, expected) in [
        ("localhost", "200"),
        ("written.localhost", "200"),
        ("given.localhost", "200"),
        ("other.localhost", "403"),
    ] {
        assert_eq!(status(gateway.url(), host), expected, "{host}");
    }
    assert_eq!(gateway.end("-TERM").0, Some(0));
    // A name of others is as good as an address that they can reach.
    home.user_file(
        "config.toml",
        "[gateway]\nallow_hosts = ['mcp.example.com']\n",
    );
    let refused = home.run(["gateway", "--listen", ":0"]).with_code(2);
    refused.complains(&[
        "mcp.example.com",
        "`allow_hosts` is written in",
        "config.toml:2",
    ]);
}

#[test]
fn a_supervisor_is_told_that_the_gateway_serves_that_it_lives_and_that_it_ends() {
    let home = Home::new();
    let scratch = Scratch::new();
    let path = scratch.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let heard = |patience: Duration| {
        let mut bytes = [0; 64];
        socket.set_read_timeout(Some(patience)).unwrap();
        let length = socket.recv(&mut bytes).ok()?;
        let text: Vec<u8> = bytes.into_iter().take(length).collect();
        Some(String::from_utf8(text).unwrap())
    };
    let soon = || heard(Duration::from_secs(30)).unwrap();
    let mut command = home.command(["gateway", "--json", "--listen", ":0"]);
    command
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "100000");
    let gateway = Running::of(&mut command);
    assert_eq!(soon(), "READY=1");
    assert_eq!(soon(), "WATCHDOG=1");
    assert_eq!(soon(), "WATCHDOG=1");
    assert_eq!(gateway.end("-TERM").0, Some(0));
    let mut rest = std::iter::from_fn(|| heard(Duration::from_millis(1)));
    assert!(rest.any(|said| said == "STOPPING=1"));
}

#[test]
fn the_container_has_no_root_and_is_made_of_what_is_there() {
    let text = packaging("container/Containerfile");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (build, image) = text.rsplit_once("\nFROM ").unwrap();
    for line in build.lines().filter(|line| line.starts_with("COPY ")) {
        let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
        words.pop();
        for source in words {
            assert!(root.join(source).exists(), "{line}");
        }
    }
    assert!(
        !image.contains("\nRUN "),
        "there is no shell to run anything"
    );
    let user = image.lines().find_map(|line| line.strip_prefix("USER "));
    let (user, group) = user.unwrap().split_once(':').unwrap();
    assert!(user.parse::<u32>().unwrap() > 0 && group.parse::<u32>().unwrap() > 0);
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let version = manifest.split("rust-version = \"").nth(1).unwrap();
    let version = version.split('"').next().unwrap();
    assert!(
        build.contains(&format!("FROM rust:{version}-")),
        "{version}"
    );
}
