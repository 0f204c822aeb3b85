//! What every tool is: a definition, and something to run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::confine::{Inside, Missing, Place, Root};
use crate::definition::ToolDefinition;
use crate::error::ToolError;
use crate::job::{self, Job};
use crate::output::ToolOutput;
use crate::progress::Progress;
use crate::refusal::Refusal;
use crate::sandbox::{Protection, Sandbox};

/// The answer to one call. Dropping it ends whatever the call has started.
pub(crate) type Answer<'a> =
    Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>>;

/// One tool.
pub(crate) trait Tool: Send + Sync {
    fn definition(&self) -> ToolDefinition;

    fn run<'a>(&'a self, call: Call<'a>) -> Answer<'a>;
}

/// What all calls of a workspace share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) root: Root,
    /// Held while a file is replaced, so that of two edits at once none is lost.
    pub(crate) writing: Mutex<()>,
    /// Where the state before running commands is kept for other processes.
    pub(crate) baselines: OnceLock<PathBuf>,
    pub(crate) file_room: Arc<Semaphore>,
    pub(crate) search_room: Arc<Semaphore>,
    pub(crate) shell_room: Arc<Semaphore>,
}

impl Shared {
    /// Locates a file that is to be changed, if it may be, and keeps other changes out meanwhile.
    pub(crate) fn change(
        &self,
        path: &Inside,
        missing: Missing,
        protection: Protection,
        job: &Job,
    ) -> Result<(Place, MutexGuard<'_, ()>), Refusal> {
        let check = |path: &Path| {
            protection.check(path)?;
            self.root.check_writable(path)
        };
        check(path.relative())?;
        // Nothing is left half done by one who panicked: files are replaced whole.
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        job.check()?;
        let place = self.root.locate(path, missing)?;
        // A link may have led there by another name.
        check(&place.path())?;
        Ok((place, writing))
    }
}

/// One call of one tool.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) tool: &'static str,
    pub(crate) shared: &'a Arc<Shared>,
    /// The complete environment of shell commands.
    pub(crate) environment: &'a [(OsString, OsString)],
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) arguments: &'a Value,
    pub(crate) progress: &'a dyn Progress,
}

impl Call<'_> {
    /// The arguments, read. A call without any is one with none.
    pub(crate) fn arguments<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        let read = match self.arguments {
            Value::Null => T::deserialize(&Value::Object(Map::new())),
            given @ Value::Object(_) => T::deserialize(given),
            _ => return Err(self.wrong("they must be a JSON object")),
        };
        read.map_err(|error| self.wrong(error.to_string()))
    }

    /// Work on one file or directory: on a thread where blocking harms nobody.
    pub(crate) async fn on_file(
        &self,
        work: impl FnOnce(&Shared, &Job) -> Result<ToolOutput, Refusal> + Send + 'static,
    ) -> Result<ToolOutput, ToolError> {
        self.blocking(&self.shared.file_room, work).await
    }

    /// A search, which may take long.
    pub(crate) async fn on_many(
        &self,
        work: impl FnOnce(&Shared, &Job) -> Result<ToolOutput, Refusal> + Send + 'static,
    ) -> Result<ToolOutput, ToolError> {
        self.blocking(&self.shared.search_room, work).await
    }

    async fn blocking(
        &self,
        room: &Arc<Semaphore>,
        work: impl FnOnce(&Shared, &Job) -> Result<ToolOutput, Refusal> + Send + 'static,
    ) -> Result<ToolOutput, ToolError> {
        let shared = Arc::clone(self.shared);
        job::run(room, self.progress, move |job| work(&shared, job))
            .await
            .map(|result| result.unwrap_or_else(ToolOutput::from))
            .map_err(|source| ToolError::Internal {
                tool: self.tool,
                source,
            })
    }

    pub(crate) fn wrong(&self, message: impl Into<String>) -> ToolError {
        ToolError::Arguments {
            tool: self.tool,
            message: message.into(),
        }
    }
}
