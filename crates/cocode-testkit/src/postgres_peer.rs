//! A real PostgreSQL server for one test: a cluster in a directory of its own, which ends and is gone
//! with the test, however that ends.
//!
//! Debian's package `postgresql` brings the programs, so only tests named `system_…` may expect it. All
//! calls block.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::tls::Identity;

/// Where Debian keeps the programs, a directory for each version.
const PROGRAMS: &str = "/usr/lib/postgresql";
/// Who may do everything in a cluster.
const ADMIN: &str = "admin";
/// Who owns the databases that tests use.
const USER: &str = "cocode";
/// The passwords of both, as they are and as an address says them.
const PASSWORD: &str = "open@sesame";
const PASSWORD_IN_ADDRESS: &str = "open%40sesame";

/// How long a server may take to start or to end on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Runs the server, and ends it at once when the test is gone: then nobody holds the other end of
/// standard input.
const KEEPER: &str = r#"exec 3<&0
"$@" 3<&- & server=$!
{ read -r word <&3 || word=QUIT; kill -s "$word" "$server" 2>/dev/null; } &
wait "$server""#;

/// A cluster, and its server. It ends with this, or with the test.
#[derive(Debug)]
pub struct PostgresPeer {
    directory: TempDir,
    programs: PathBuf,
    port: u16,
    /// Whom the server runs as, if the test is root's: it refuses to be root.
    other_user: Option<Owner>,
    server: Option<Child>,
}

#[derive(Clone, Copy, Debug)]
struct Owner {
    user: u32,
    group: u32,
}

impl PostgresPeer {
    /// Makes a cluster with a database `cocode`, and starts its server on the loopback interface.
    ///
    /// # Panics
    ///
    /// If it cannot be made or started.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut peer = Self {
            other_user: other_user(directory.path()),
            directory,
            programs: newest_programs(),
            port: 0,
            server: None,
        };
        peer.give(peer.directory.path());
        peer.write("password", PASSWORD);
        let identity = Identity::generate();
        peer.write("authority.pem", &identity.authority_pem);
        peer.write("server.pem", &identity.certificate_pem);
        peer.write("server.key", &identity.key_pem);
        let password = format!("--pwfile={}", peer.path("password").display());
        let user = format!("--username={ADMIN}");
        let made = peer
            .command(&peer.programs.join("initdb"))
            .args(["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"])
            .args([&*user, &*password, "--no-sync", "--pgdata"])
            .arg(peer.path("data"))
            .output()
            .expect("initdb can be started");
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{said}");
        peer.start_on_a_free_port();
        peer.sql(
            "postgres",
            &format!("CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'"),
        );
        peer.create_database("cocode");
        peer
    }

    /// Makes another database, which the user of [`Self::address`] owns.
    pub fn create_database(&self, name: &str) {
        self.sql("postgres", &format!("CREATE DATABASE {name} OWNER {USER}"));
    }

    /// The address of a database, with its password. It is not encrypted, unless `sslmode` is added.
    pub fn address(&self, database: &str) -> String {
        let port = self.port;
        format!("postgres://{USER}:{PASSWORD_IN_ADDRESS}@127.0.0.1:{port}/{database}")
    }

    /// The address of a database by the server's unix socket.
    pub fn socket_address(&self, database: &str) -> String {
        let (port, directory) = (self.port, self.directory.path().display());
        format!(
            "postgres:///{database}?host={directory}&port={port}&user={USER}&password={PASSWORD_IN_ADDRESS}"
        )
    }

    /// What nobody may be shown: a part of the password that stays the same in an address.
    pub const fn secret(&self) -> &'static str {
        "sesame"
    }

    /// The password, for a variable.
    pub const fn password(&self) -> &'static str {
        PASSWORD
    }

    /// The port on the loopback interface.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The certificate of the authority that vouches for the server, for `sslrootcert`.
    pub fn authority_file(&self) -> PathBuf {
        self.path("authority.pem")
    }

    /// Does something as who may do everything, and gives what comes of it: a line for each row, its
    /// columns apart by `|`.
    pub fn sql(&self, database: &str, text: &str) -> String {
        let done = Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text])
            .arg("-h")
            .arg(self.directory.path())
            .args(["-p", &self.port.to_string(), "-U", ADMIN, "-d", database])
            .env("PGPASSWORD", PASSWORD)
            .stdin(Stdio::null())
            .output()
            .expect("psql can be started");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{text}: {said}");
        let answer = String::from_utf8_lossy(&done.stdout);
        answer.trim_end().to_owned()
    }

    /// Ends the server as an administrator would: connections are cut, nothing is lost.
    pub fn stop(&mut self) {
        self.end("INT");
    }

    /// Starts it again, at the same address.
    pub fn start_again(&mut self) {
        assert!(self.server.is_none(), "it runs");
        assert!(self.run(), "{}", self.log());
    }

    /// What the server has written about itself.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn start_on_a_free_port(&mut self) {
        // Somebody else may take a port after it was found free.
        for _ in 0..5 {
            let free = TcpListener::bind("127.0.0.1:0").expect("there are free ports");
            self.port = free.local_addr().expect("it is bound").port();
            drop(free);
            if self.run() {
                return;
            }
        }
        panic!("{}", self.log());
    }

    /// Runs the server, and waits until it answers. `false` if it ends instead.
    fn run(&mut self) -> bool {
        let before = self.log().len();
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path("log"))
            .expect("a file for the log");
        let mut command = self.command(Path::new("sh"));
        command
            .args(["-c", KEEPER, "sh"])
            .arg(self.programs.join("postgres"))
            .arg("-D")
            .arg(self.path("data"));
        let sockets = format!(
            "unix_socket_directories={}",
            self.directory.path().display()
        );
        let port = format!("port={}", self.port);
        let certificate = format!("ssl_cert_file={}", self.path("server.pem").display());
        let key = format!("ssl_key_file={}", self.path("server.key").display());
        for setting in [
            "listen_addresses=127.0.0.1",
            "fsync=off",
            "shared_buffers=16MB",
            "log_min_messages=warning",
            "ssl=on",
            &sockets,
            &port,
            &certificate,
            &key,
        ] {
            command.args(["-c", setting]);
        }
        let server = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("a shell can be started");
        self.server = Some(server);
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let log = self.log();
            if log
                .get(before..)
                .is_some_and(|new| new.contains("ready to accept connections"))
            {
                return true;
            }
            let server = self.server.as_mut().expect("it was just started");
            if server.try_wait().expect("it can be waited for").is_some() {
                self.server = None;
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the server does not start: {}", self.log());
    }

    fn end(&mut self, signal: &str) {
        let Some(mut server) = self.server.take() else {
            return;
        };
        let mut words = server.stdin.take().expect("it was piped");
        // It may have ended by itself.
        let _told = writeln!(words, "{signal}");
        let ended = server.wait();
        assert!(
            ended.is_ok() || std::thread::panicking(),
            "the server cannot be ended: {ended:?}"
        );
    }

    /// A program that runs as the owner of the cluster.
    fn command(&self, program: &Path) -> Command {
        let mut command = match self.other_user {
            None => Command::new(program),
            Some(Owner { user, group }) => {
                let mut command = Command::new("setpriv");
                command
                    .args([format!("--reuid={user}"), format!("--regid={group}")])
                    .arg("--clear-groups")
                    .arg(program);
                command
            }
        };
        command.current_dir(self.directory.path());
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::write(&path, text).expect("a file can be written");
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&path, private).expect("it is ours");
        self.give(&path);
    }

    fn give(&self, path: &Path) {
        if let Some(Owner { user, group }) = self.other_user {
            chown(path, Some(user), Some(group)).expect("root may give away");
        }
    }
}

impl Drop for PostgresPeer {
    fn drop(&mut self) {
        self.end("QUIT");
    }
}

/// Whom to run as, if we are root: the user that the package has made.
fn other_user(ours: &Path) -> Option<Owner> {
    let we = fs::metadata(ours).expect("it was just made").uid();
    if we != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("there are users");
    let fields = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.first() == Some(&"postgres"));
    let number = |index: usize| fields.as_ref()?.get(index)?.parse().ok();
    Some(Owner {
        user: number(2).expect("the package postgresql has made its user"),
        group: number(3).expect("every user has a group"),
    })
}

fn newest_programs() -> PathBuf {
    let versions = fs::read_dir(PROGRAMS);
    let versions = versions.unwrap_or_else(|error| {
        panic!("{PROGRAMS}: {error}; Debian's package `postgresql` is missing")
    });
    let newest = versions
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|version| Path::new(&format!("{PROGRAMS}/{version}/bin/postgres")).exists())
        .max();
    let newest = newest.expect("Debian's package `postgresql` is installed");
    format!("{PROGRAMS}/{newest}/bin").into()
}
