//! The keyring: no bus, a bus that hangs, and a real Secret Service on a bus of its own.

use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cocode_auth::{
    KeyringError, Place, Reference, References, Secret, SecretStore, StoreChoice, StoreError,
    StoredSecret,
};
use cocode_process::{GuardedChild, ProcessSpec, spawn};
use secret_service::{EncryptionType, SecretService};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::{PATH, fresh_directory, get, name, set, shown, store};

/// Far longer than a daemon takes to start, also on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);

const BUS: &str = r#"<busconfig>
  <type>session</type>
  <listen>unix:abstract=ADDRESS</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#;

/// A bus on which nobody is started by being asked for, so that a test has what it starts.
pub(crate) struct Bus {
    _daemon: GuardedChild,
    pub(crate) address: String,
    directory: PathBuf,
}

impl Bus {
    pub(crate) async fn start(test: &str) -> Self {
        let directory = fresh_directory(test);
        fs::create_dir_all(&directory).unwrap();
        let config = directory.join("bus.conf");
        let socket = format!("cocode-auth-{test}-{}", std::process::id());
        fs::write(&config, BUS.replace("ADDRESS", &socket)).unwrap();
        let mut spec = program("dbus-daemon", &directory);
        spec.args = vec![
            "--nofork".into(),
            "--print-address".into(),
            "--config-file".into(),
            config.into(),
        ];
        let mut daemon = spawn(&spec).unwrap();
        let mut lines = BufReader::new(daemon.take_stdout().unwrap()).lines();
        let address = lines.next_line().await.unwrap();
        let address = address.unwrap_or_else(|| panic!("{:?}", daemon.stderr().lines(9)));
        Self {
            _daemon: daemon,
            address,
            directory,
        }
    }

    /// Starts GNOME Keyring with an unlocked default keyring, and waits for it.
    pub(crate) async fn start_keyring(&self) -> GuardedChild {
        let mut spec = program("gnome-keyring-daemon", &self.directory);
        spec.args = vec![
            "--foreground".into(),
            "--unlock".into(),
            "--components=secrets".into(),
        ];
        spec.env
            .push(("DBUS_SESSION_BUS_ADDRESS".into(), (&self.address).into()));
        let mut daemon = spawn(&spec).unwrap();
        let mut stdin = daemon.take_stdin().unwrap();
        stdin.write_all(b"password of the keyring").await.unwrap();
        drop(stdin);
        let store = self.store(StoreChoice::Auto);
        let started = Instant::now();
        loop {
            let description = store.describe().await;
            if description.place == Place::Keyring {
                return daemon;
            }
            assert!(
                started.elapsed() < DEADLINE,
                "{description}: {:?}",
                daemon.stderr().lines(9)
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn store(&self, choice: StoreChoice) -> SecretStore {
        store(choice, &self.home(), Some(&self.address))
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.join("home")
    }

    pub(crate) async fn lock_default_keyring(&self) {
        let connection = zbus::connection::Builder::address(self.address.as_str())
            .unwrap()
            .build()
            .await
            .unwrap();
        let service = SecretService::connect_with_existing(EncryptionType::Plain, connection)
            .await
            .unwrap();
        let collection = service.get_default_collection().await.unwrap();
        collection.lock().await.unwrap();
        assert!(collection.is_locked().await.unwrap());
    }
}

fn program(name: &str, home: &Path) -> ProcessSpec {
    let runtime = home.join("run");
    fs::create_dir_all(&runtime).unwrap();
    let mut spec = ProcessSpec::new(name);
    spec.env = vec![
        ("PATH".into(), PATH.into()),
        ("HOME".into(), home.into()),
        ("XDG_RUNTIME_DIR".into(), runtime.into()),
    ];
    spec
}

#[tokio::test]
async fn without_a_bus_the_file_is_used_and_said_to_be() {
    let directory = fresh_directory("no-bus");
    let auto = store(StoreChoice::Auto, &directory, None);
    assert_eq!(set(&auto, "github", "hunter2").await, Place::File);
    assert_eq!(get(&auto, "github").await.as_deref(), Some("hunter2"));
    assert_eq!(
        auto.describe().await.to_string(),
        format!(
            "file {}, because there is no D-Bus session bus",
            directory.join("secrets.json").display()
        )
    );

    let keyring = store(StoreChoice::Keyring, &directory, None);
    let error = keyring.get(&name("github")).await.unwrap_err();
    assert!(matches!(&error, StoreError::Keyring(KeyringError::NoBus)));
    let error = keyring.set(&name("x"), &Secret::new("hunter2")).await;
    assert!(!shown(&error.unwrap_err()).contains("hunter2"));
}

#[tokio::test]
async fn a_secret_in_a_keyring_out_of_reach_is_not_said_to_be_unset() {
    let directory = fresh_directory("out-of-reach");
    let auto = store(StoreChoice::Auto, &directory, None);
    set(&auto, "github", "old").await;
    fs::write(
        directory.join("secrets.json"),
        r#"{"version": 1, "secrets": {}, "in_keyring": ["github"]}"#,
    )
    .unwrap();
    let out_of_reach = |error| matches!(error, StoreError::Keyring(KeyringError::NoBus));
    assert!(out_of_reach(auto.get(&name("github")).await.unwrap_err()));
    assert!(out_of_reach(
        auto.remove(&name("github")).await.unwrap_err()
    ));
    assert_eq!(
        auto.list().await.unwrap(),
        [StoredSecret {
            name: name("github"),
            place: Place::Keyring
        }]
    );
    // Setting it again puts it where it can be had.
    assert_eq!(set(&auto, "github", "new").await, Place::File);
    assert_eq!(get(&auto, "github").await.as_deref(), Some("new"));
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_hangs_does_not_hold_up_the_file() {
    let socket = format!("cocode-auth-hanging-{}", std::process::id());
    // Connections wait to be accepted, for ever.
    let address = SocketAddr::from_abstract_name(&socket).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let directory = fresh_directory("hanging");
    let bus = format!("unix:abstract={socket}");
    let auto = store(StoreChoice::Auto, &directory, Some(&bus));
    assert_eq!(set(&auto, "github", "hunter2").await, Place::File);
    assert_eq!(get(&auto, "github").await.as_deref(), Some("hunter2"));
    assert_eq!(get(&auto, "other").await, None);
    let description = auto.describe().await;
    assert!(
        description
            .to_string()
            .ends_with("the system keyring cannot be used: it did not answer within 2 seconds"),
        "{description}"
    );
}

#[tokio::test]
async fn system_keyring_keeps_secrets_in_a_real_secret_service() {
    let bus = Bus::start("keyring").await;
    let _keyring = bus.start_keyring().await;
    for choice in [StoreChoice::Auto, StoreChoice::Keyring] {
        let store = bus.store(choice);
        assert_eq!(get(&store, "github").await, None);
        assert!(!store.remove(&name("github")).await.unwrap());
        assert_eq!(set(&store, "github", "old").await, Place::Keyring);
        let text = "hunter2 \u{1f511} \"quoted\"\n";
        assert_eq!(set(&store, "github", text).await, Place::Keyring);
        assert_eq!(set(&store, "other", "x").await, Place::Keyring);
        assert_eq!(get(&store, "github").await.as_deref(), Some(text));
        let listed = ["github", "other"].map(|text| StoredSecret {
            name: name(text),
            place: Place::Keyring,
        });
        assert_eq!(store.list().await.unwrap(), listed);
        // Names are noted beside it, values are not.
        let file = fs::read_to_string(bus.home().join("secrets.json")).unwrap();
        assert!(
            file.contains("github") && !file.contains("hunter2"),
            "{file}"
        );

        assert!(store.remove(&name("github")).await.unwrap());
        assert_eq!(get(&store, "github").await, None);
        assert_eq!(get(&store, "other").await.as_deref(), Some("x"));
        assert!(store.remove(&name("other")).await.unwrap());
        assert_eq!(store.list().await.unwrap(), []);
    }
    assert_eq!(
        bus.store(StoreChoice::Auto).describe().await.to_string(),
        "system keyring (Secret Service), because it is there and answers"
    );
}

#[tokio::test]
async fn system_keyring_and_file_never_disagree() {
    let bus = Bus::start("both").await;
    let auto = bus.store(StoreChoice::Auto);
    // No keyring yet.
    assert_eq!(
        auto.describe().await.to_string(),
        format!(
            "file {}, because no Secret Service answers on D-Bus",
            bus.home().join("secrets.json").display()
        )
    );
    assert_eq!(set(&auto, "github", "from the file").await, Place::File);

    let mut keyring = bus.start_keyring().await;
    assert_eq!(get(&auto, "github").await.as_deref(), Some("from the file"));
    assert_eq!(set(&auto, "github", "newer").await, Place::Keyring);
    assert_eq!(get(&auto, "github").await.as_deref(), Some("newer"));
    let file = fs::read_to_string(bus.home().join("secrets.json")).unwrap();
    assert!(!file.contains("from the file"), "{file}");

    // The keyring is gone: what it holds is out of reach, not unset.
    keyring.stop().await;
    let error = auto.get(&name("github")).await.unwrap_err();
    assert!(matches!(
        error,
        StoreError::Keyring(KeyringError::NoService)
    ));
    assert_eq!(set(&auto, "github", "newest").await, Place::File);

    // It comes back with what is now an old value.
    let _keyring = bus.start_keyring().await;
    assert_eq!(get(&auto, "github").await.as_deref(), Some("newest"));
    assert!(auto.remove(&name("github")).await.unwrap());
    assert_eq!(get(&auto, "github").await, None);
    assert_eq!(get(&bus.store(StoreChoice::Keyring), "github").await, None);
}

#[tokio::test]
async fn system_keyring_that_stays_locked_is_told() {
    let bus = Bus::start("locked").await;
    let _keyring = bus.start_keyring().await;
    let auto = bus.store(StoreChoice::Auto);
    set(&auto, "github", "hunter2").await;
    bus.lock_default_keyring().await;
    // Nobody is there to be asked for the password.
    let commands = cocode_auth::CommandSettings::new(Vec::new());
    let reference: Reference = "keyring:github".parse().unwrap();
    let error = References::new(auto, commands)
        .resolve(&reference)
        .await
        .unwrap_err();
    let text = shown(&error);
    assert!(
        text.contains("`keyring:github` cannot be looked up") && text.contains("is locked"),
        "{text}"
    );
}

#[tokio::test]
async fn system_keyring_takes_writers_at_once() {
    let bus = Bus::start("writers").await;
    let _keyring = bus.start_keyring().await;
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..8 {
        let store = bus.store(StoreChoice::Auto);
        writers.spawn(async move {
            set(&store, "shared", &format!("by {number}")).await;
            set(&store, &format!("own-{number}"), &format!("{number}")).await;
        });
    }
    writers.join_all().await;
    let store = bus.store(StoreChoice::Auto);
    for number in 0..8 {
        let found = get(&store, &format!("own-{number}")).await;
        assert_eq!(found, Some(number.to_string()));
    }
    assert!(get(&store, "shared").await.unwrap().starts_with("by "));
    assert!(store.remove(&name("shared")).await.unwrap());
    assert_eq!(get(&store, "shared").await, None);
    assert_eq!(store.list().await.unwrap().len(), 8);
}

/// Collects what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn system_keyring_shows_no_secret_in_traces() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // For all threads: a test has its process to itself.
    tracing::subscriber::set_global_default(subscriber).unwrap();

    let bus = Bus::start("traces").await;
    let _keyring = bus.start_keyring().await;
    let auto = bus.store(StoreChoice::Auto);
    set(&auto, "github", "hunter2hunter2").await;
    set(&auto, "github", "hunter3hunter3").await;
    assert_eq!(
        get(&auto, "github").await.as_deref(),
        Some("hunter3hunter3")
    );
    auto.remove(&name("github")).await.unwrap();

    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("TRACE zbus"), "{text}");
    // As text, and as the list of bytes that debug output makes of it.
    for secret in ["hunter", "104, 117, 110, 116, 101, 114", "68756e746572"] {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
}
