//! A program that nobody here wrote which makes requests from the description of an API and judges the answers:
//! schemathesis, installed by `cargo xtask peers`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// So that every run makes the same requests; one after the other, for the same reason.
const SEED: &str = "20260728";

/// What is judged, and how.
#[derive(Debug)]
pub struct ApiJudge {
    /// Where it may write.
    pub directory: PathBuf,
    /// The address of the description, an OpenAPI document.
    pub document: String,
    /// The token of who may do everything.
    pub token: String,
    /// Its settings, as it reads them from `schemathesis.toml`.
    pub settings: String,
    /// Requests that are made up for each operation, beside those that follow from its description.
    pub examples: u32,
    /// How long a request may take, in seconds.
    pub request_seconds: u32,
}

impl ApiJudge {
    /// Judges, and gives what was said: it has to be content. Takes its time, and blocks.
    pub fn content(&self) -> String {
        let Self {
            directory,
            document,
            token,
            settings,
            examples,
            request_seconds,
        } = self;
        fs::create_dir_all(directory).expect("a directory");
        let file = directory.join("schemathesis.toml");
        fs::write(&file, settings).expect("a file");
        let output = Command::new(admin_python("bin/schemathesis"))
            .arg("--config-file")
            .arg(&file)
            .args(["run", document])
            .args(["--header", &format!("Authorization: Bearer {token}")])
            .args(["--max-examples", &examples.to_string(), "--seed", SEED])
            .args(["--phases", "examples,coverage,fuzzing,stateful"])
            .args(["--continue-on-failure", "--no-color"])
            .args(["--workers", "1"])
            .args(["--request-timeout", &request_seconds.to_string()])
            .current_dir(directory)
            .output()
            .expect("schemathesis can be started");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{complained}");
        said
    }
}

/// A file of what judges management APIs.
pub fn admin_python(path: &str) -> PathBuf {
    let root = std::env::var_os("COCODE_PEERS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"),
        PathBuf::from,
    );
    let file = root.join("admin-python").join(path);
    assert!(file.exists(), "{path} is missing: run `cargo xtask peers`");
    file
}
