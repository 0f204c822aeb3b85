//! The client that is measured: a [`Session`].

use std::ffi::OsString;

use cocode_client::{RequestOptions, Session, SessionOptions, stdio};

use crate::Failure;
use crate::caller::{Caller, Echo};

#[derive(Clone, Debug)]
pub(crate) struct Ours {
    pub(crate) session: Session,
}

impl Ours {
    /// A session with the server of this program, as anybody would open it.
    pub(crate) async fn start(n_tools: usize) -> Result<Self, Failure> {
        Self::start_with(n_tools, SessionOptions::default()).await
    }

    pub(crate) async fn start_with(
        n_tools: usize,
        options: SessionOptions,
    ) -> Result<Self, Failure> {
        let arguments = [OsString::from("serve"), n_tools.to_string().into()];
        let target = stdio(std::env::current_exe()?, arguments, []);
        let session = Session::connect(target, options).await?;
        Ok(Self { session })
    }
}

impl Caller for Ours {
    async fn echo(&mut self, echo: &Echo) -> Result<usize, Failure> {
        let called = self
            .session
            .call_tool("echo", Some(&echo.raw), RequestOptions::default());
        Ok(called.await?.raw.as_bytes().len())
    }
}
