//! The files of `packaging/`: that nginx and systemd understand them, and that requests find their way
//! through nginx to two gateways.

use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cocode_testkit::Script;

use crate::gateway::Running;
use crate::harness::{Finished, Scratch, program};
use crate::home::Home;
use crate::status::entry;

/// How long nginx may take to listen.
const STARTS_WITHIN: Duration = Duration::from_secs(20);

fn packaging(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    std::fs::read_to_string(root.join(file)).unwrap()
}

/// nginx is where only administrators look.
fn nginx() -> Command {
    let usual = PathBuf::from("/usr/sbin/nginx");
    Command::new(if usual.exists() {
        usual
    } else {
        PathBuf::from("nginx")
    })
}

/// Our file for nginx as it is, but for what everybody has to change: the certificate, the ports and the
/// addresses of the gateways.
struct Site {
    scratch: Scratch,
    certificate: String,
    port: u16,
}

impl Site {
    fn new(gateways: [&str; 2]) -> Self {
        let scratch = Scratch::new();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let certificate = scratch.file("cert.pem", &made.cert.pem());
        let key = scratch.file("key.pem", &made.signing_key.serialize_pem());
        let [port, other_port] = free_ports();
        let log = scratch.path().join("access.log").display().to_string();
        let mut text = packaging("nginx/cocode.conf");
        for (from, to) in [
            ("/etc/cocode/tls/fullchain.pem", certificate.as_str()),
            ("/etc/cocode/tls/privkey.pem", &key),
            ("/var/log/nginx/cocode.log", &log),
            ("listen 443 ", &format!("listen 127.0.0.1:{port} ")),
            ("listen 80;", &format!("listen 127.0.0.1:{other_port};")),
            ("    listen [::]:443 ssl http2;\n", ""),
            ("    listen [::]:80;\n", ""),
            ("10.0.0.11:7777", gateways[0]),
            ("10.0.0.12:7777", gateways[1]),
        ] {
            assert!(text.contains(from), "{from} is in the file");
            text = text.replace(from, to);
        }
        let site = scratch.file("cocode.conf", &text);
        let directory = scratch.path().display();
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let temporary = temporary.map(|name| format!("    {name}_temp_path {directory}/{name};\n"));
        let temporary = temporary.concat();
        let main = format!(
            "pid {directory}/nginx.pid;\nerror_log {directory}/error.log;\ndaemon off;\n\
             events {{ worker_connections 256; }}\nhttp {{\n{temporary}    include {site};\n}}\n"
        );
        scratch.file("nginx.conf", &main);
        Self {
            scratch,
            certificate,
            port,
        }
    }

    fn command(&self) -> Command {
        let directory = self.scratch.path();
        let mut command = nginx();
        command
            .arg("-p")
            .arg(directory)
            .arg("-c")
            .arg(directory.join("nginx.conf"))
            .arg("-e")
            .arg(directory.join("error.log"));
        command
    }

    fn start(&self) -> Proxy {
        let mut command = self.command();
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        let proxy = Proxy(child.unwrap());
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(
                begun.elapsed() < STARTS_WITHIN,
                "{}",
                self.read("error.log")
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        proxy
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.scratch.path().join(file)).unwrap_or_default()
    }

    /// What our client is told through nginx, as the one with this token.
    fn client(&self, words: &[&str], scheme: &str, path: &str, token: usize) -> Finished {
        let url = format!("{scheme}://localhost:{}{path}", self.port);
        let header = format!("Authorization: Bearer {token}");
        let mut command = program(["mcp"]);
        command
            .args(words)
            .args(["--url", &url, "--header", &header])
            .env("COCODE_CA_FILE", &self.certificate);
        Finished::of(command.output().unwrap())
    }
}

/// An nginx that runs, with its workers.
struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        // The master ends its workers at this, and not if it is killed.
        let told = Command::new("kill")
            .args(["-TERM", &self.0.id().to_string()])
            .status();
        assert!(told.is_ok_and(|told| told.success()) || std::thread::panicking());
        assert!(self.0.wait().is_ok() || std::thread::panicking());
    }
}

/// Ports that nobody has at this moment.
fn free_ports() -> [u16; 2] {
    let listeners = [(), ()].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

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
        let listed = site.client(&["tools", "--protocol", "modern"], "https", "/mcp", token);
        let listed = listed.with_code(0).stdout;
        assert!(listed.contains("mcp__one__echo"), "{listed}");
    };
    (0..16).for_each(list);
    let log = site.read("access.log");
    for address in &addresses {
        assert!(log.contains(address.as_str()), "both are asked: {log}");
    }
    // A WebSocket, and what is not for everybody.
    let socket = site.client(&["tools"], "wss", "/ws/one", 0).with_code(0);
    assert!(socket.stdout.contains("echo"), "{}", socket.stdout);
    site.client(&["ping"], "https", "/metrics", 0).with_code(3);
    // Nobody gets the token into the log.
    site.client(&["ping"], "https", "/mcp?token=hunter2", 0);
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
