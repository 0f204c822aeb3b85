//! References, resolved by real stores and real shells.

use std::error::Error as _;
use std::path::Path;

use cocode_auth::{
    CommandError, CommandSettings, KeyringError, Reference, References, Secret, SecretError,
    StoreError,
};
use cocode_process::ExitReport;

use crate::{PATH, file_store, fresh_directory, set, shown};

pub(crate) fn settings() -> CommandSettings {
    CommandSettings::new(vec![("PATH".into(), PATH.into())])
}

pub(crate) fn references(directory: &Path, settings: CommandSettings) -> References {
    References::new(file_store(directory), settings)
}

pub(crate) async fn resolve(references: &References, text: &str) -> Result<Secret, SecretError> {
    let reference: Reference = text.parse().unwrap();
    references.resolve(&reference).await
}

async fn run(line: &str) -> Result<String, CommandError> {
    let references = references(Path::new("no-such-directory"), settings());
    match resolve(&references, &format!("cmd:{line}")).await {
        Ok(secret) => Ok(secret.expose().to_owned()),
        Err(error) => {
            let text = shown(&error);
            assert!(!text.contains("hunter2"), "{text}");
            match error {
                SecretError::Command { source, .. } => Err(source),
                other => panic!("{other}"),
            }
        }
    }
}

#[tokio::test]
async fn a_stored_secret_is_found() {
    let directory = fresh_directory("stored");
    set(&file_store(&directory), "github", "hunter2").await;
    let references = references(&directory, settings());
    let secret = resolve(&references, "keyring:github").await.unwrap();
    assert_eq!(secret.expose(), "hunter2");
}

#[tokio::test]
async fn a_missing_secret_is_told_with_the_way_to_set_it() {
    let directory = fresh_directory("missing");
    let references = references(&directory, settings());
    let error = resolve(&references, "keyring:github").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "`keyring:github` is not set; looked in: file {}, because the configuration says so. \
             Run `cocode secret set github`",
            directory.join("secrets.json").display()
        )
    );
}

#[tokio::test]
async fn a_store_that_fails_is_told_with_its_reason() {
    let directory = fresh_directory("failing");
    let store = crate::store(cocode_auth::StoreChoice::Keyring, &directory, Some("unix:"));
    let references = References::new(store, settings());
    let error = resolve(&references, "keyring:github").await.unwrap_err();
    assert_eq!(error.to_string(), "`keyring:github` cannot be looked up");
    let source = error.source().unwrap().downcast_ref::<StoreError>();
    if cfg!(target_os = "linux") {
        assert!(
            matches!(
                source,
                Some(StoreError::Keyring(KeyringError::BusUnreachable(_)))
            ),
            "{source:?}"
        );
    }
}

#[tokio::test]
async fn a_command_gives_what_it_prints_without_its_line_end() {
    assert_eq!(run("printf 'hunter2\\n'").await.unwrap(), "hunter2");
    assert_eq!(run("printf hunter2").await.unwrap(), "hunter2");
    assert_eq!(
        run("printf '%s\\n' begin middle end").await.unwrap(),
        "begin\nmiddle\nend"
    );
}

#[tokio::test]
async fn a_command_sees_the_given_environment_and_no_input() {
    let mut settings = settings();
    settings.environment.push(("VAULT".into(), "work".into()));
    settings.directory = Some("/".into());
    let references = references(Path::new("no-such-directory"), settings);
    // Were there input to wait for, `cat` would not end. The shell adds PWD and the like itself.
    let line = "cmd:cat; env | grep -v -e '^_=' -e '^PWD=' -e '^SHLVL=' | sort; pwd";
    let secret = resolve(&references, line).await.unwrap();
    assert_eq!(secret.expose(), format!("PATH={PATH}\nVAULT=work\n/"));
}

#[tokio::test]
async fn a_command_that_fails_is_told_by_its_last_words() {
    let error = run("echo hunter2; for n in 1 2 3 4 5 6; do echo \"line $n\" >&2; done; exit 3")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the command failed with exit code 3; it said: line 2 / line 3 / line 4 / line 5 / line 6"
    );
    assert!(matches!(
        error,
        CommandError::Failed {
            exit: ExitReport::Code(3),
            ..
        }
    ));
}

#[tokio::test]
async fn a_secret_that_a_command_repeats_on_stderr_is_hidden() {
    let error = run("set -x; echo hunter2; false").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the command failed with exit code 1; it said: + echo … / + false"
    );
}

#[tokio::test]
async fn a_missing_program_is_told() {
    let error = run("no-such-program --token hunter2").await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("exit code 127") && text.contains("no-such-program"),
        "{text}"
    );
}

#[tokio::test]
async fn output_that_is_no_secret_is_refused() {
    assert!(matches!(run("true").await, Err(CommandError::Empty { .. })));
    let newline = run("echo; echo why >&2").await.unwrap_err();
    assert_eq!(
        newline.to_string(),
        "the command printed nothing to stdout; it said: why"
    );
    let binary = run("printf 'hunter2\\377'").await;
    assert!(matches!(binary, Err(CommandError::NotText)));
    let largest = run("head -c 65536 /dev/zero | tr '\\0' x").await.unwrap();
    assert_eq!(largest.len(), 65536);
    let endless = run("yes hunter2").await;
    assert!(matches!(endless, Err(CommandError::TooLong)));
}
