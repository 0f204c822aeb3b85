//! Results that were too large to show: listing, reading, searching and removing them.

mod grep;
mod jq;
mod list;
mod remove;
mod show;

use std::time::Duration;

use cocode_client::{
    DEFAULT_RESULTS_MAX_AGE, DEFAULT_RESULTS_MAX_BYTES, ResultStore, ResultStoreError,
    ResultStoreOptions, StoredResult,
};
use cocode_config::{RetentionSettings, Setting};

use crate::args::results::ResultVerb;
use crate::error::{CliError, Code, Exit};
use crate::text::either;
use crate::workspace::Workspace;

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;
const BYTES_PER_MEGABYTE: u64 = 1_000_000;

/// So many handles are named where one is ambiguous.
const MAX_NAMED: usize = 5;

/// Does what is asked.
pub(crate) fn run(verb: &ResultVerb, workspace: &Workspace) -> Result<Exit, CliError> {
    let store = store(workspace)?;
    match verb {
        ResultVerb::List => list::run(&store, workspace),
        ResultVerb::Show(args) => show::run(args, &store, workspace),
        ResultVerb::Grep(args) => grep::run(args, &store, workspace),
        ResultVerb::Jq(args) => jq::run(args, &store, workspace),
        ResultVerb::Remove(args) => remove::run(args, &store, workspace),
    }
}

/// The store of this user, with the limits of the configuration.
pub(crate) fn store(workspace: &Workspace) -> Result<ResultStore, CliError> {
    let retention = &workspace.config()?.settings.retention;
    let directory = workspace.places.state.join("results");
    Ok(ResultStore::open(options(directory, retention)))
}

fn options(directory: std::path::PathBuf, retention: &RetentionSettings) -> ResultStoreOptions {
    let value = |setting: &Option<Setting<u64>>| setting.as_ref().map(|setting| setting.value);
    let max_age = value(&retention.results_days)
        .map(|days| Duration::from_secs(days.saturating_mul(SECONDS_PER_DAY)));
    let max_bytes = value(&retention.results_max_mb)
        .map(|megabytes| megabytes.saturating_mul(BYTES_PER_MEGABYTE));
    ResultStoreOptions {
        directory,
        max_bytes: max_bytes.unwrap_or(DEFAULT_RESULTS_MAX_BYTES),
        max_age: max_age.unwrap_or(DEFAULT_RESULTS_MAX_AGE),
    }
}

/// The result that somebody means by a handle or its beginning.
fn read(handle: &str, store: &ResultStore) -> Result<StoredResult, CliError> {
    let read = store.resolve(handle).and_then(|handle| store.read(&handle));
    read.map_err(|error| failed(&error))
}

fn failed(error: &ResultStoreError) -> CliError {
    match error {
        ResultStoreError::Unknown { .. } => CliError::new(Code::UnknownResult, error.to_string())
            .hint("`cocode mcp result list` lists what is kept; old results are removed"),
        ResultStoreError::Ambiguous { handles, .. } => {
            let named: Vec<String> = handles
                .iter()
                .take(MAX_NAMED)
                .map(|handle| format!("`{handle}`"))
                .collect();
            CliError::new(Code::UnknownResult, error.to_string())
                .hint(format!("did you mean {}?", either(&named)))
        }
        ResultStoreError::Invalid { source, .. } => {
            CliError::new(Code::UnknownResult, error.to_string()).because(source)
        }
        other => {
            CliError::new(Code::FileError, "the store of results cannot do this").because(other)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cocode_client::ResultStoreOptions;
    use cocode_config::{RetentionSettings, Setting};

    use super::options;

    #[test]
    fn the_configuration_says_how_much_is_kept_and_how_long() {
        let none = RetentionSettings::default();
        assert_eq!(options("r".into(), &none), ResultStoreOptions::new("r"));
        let given = |value| Some(Setting { value, from: None });
        let retention = RetentionSettings {
            results_days: given(1),
            results_max_mb: given(3),
            ..RetentionSettings::default()
        };
        let expected = ResultStoreOptions {
            directory: "r".into(),
            max_bytes: 3_000_000,
            max_age: Duration::from_hours(24),
        };
        assert_eq!(options("r".into(), &retention), expected);
        let retention = RetentionSettings {
            results_days: given(u64::MAX),
            results_max_mb: given(u64::MAX),
            ..RetentionSettings::default()
        };
        let all = options("r".into(), &retention);
        assert_eq!(
            (all.max_bytes, all.max_age),
            (u64::MAX, Duration::from_secs(u64::MAX))
        );
    }
}
