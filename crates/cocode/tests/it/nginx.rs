//! nginx with the file that the project has for it, before two gateways.

use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Finished, Scratch, program};

/// How long nginx may take to listen.
const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// A file of `packaging/`.
pub(crate) fn packaging(file: &str) -> String {
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
pub(crate) struct Site {
    scratch: Scratch,
    certificate: String,
    port: u16,
}

impl Site {
    pub(crate) fn new(gateways: [&str; 2]) -> Self {
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
             events {{ worker_connections 4096; }}\nhttp {{\n{temporary}    include {site};\n}}\n"
        );
        scratch.file("nginx.conf", &main);
        Self {
            scratch,
            certificate,
            port,
        }
    }

    pub(crate) fn command(&self) -> Command {
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

    pub(crate) fn start(&self) -> Proxy {
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

    pub(crate) fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.scratch.path().join(file)).unwrap_or_default()
    }

    /// The address of a path here.
    pub(crate) fn url(&self, scheme: &str, path: &str) -> String {
        format!("{scheme}://localhost:{}{path}", self.port)
    }

    /// The certificate, which nobody else knows.
    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// What our client is told through nginx, as the one with this token.
    pub(crate) fn client(
        &self,
        words: &[&str],
        (scheme, path): (&str, &str),
        token: &str,
    ) -> Finished {
        let url = self.url(scheme, path);
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
pub(crate) struct Proxy(Child);

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
pub(crate) fn free_ports() -> [u16; 2] {
    let listeners = [(), ()].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
