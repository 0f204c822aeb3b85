//! Carries what exporters send over our own HTTP client, and notices when nobody takes it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Duration;

use cocode_client::{HeaderMap, chain};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::runtime::Handle;

use super::Office;

/// What a collector may answer; it has little to say.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// The way to the collector of one signal.
#[derive(Debug)]
pub(super) struct Courier {
    pub(super) office: Arc<Office>,
    pub(super) runtime: Handle,
    /// Secret, and marked so.
    pub(super) headers: HeaderMap,
    pub(super) timeout: Duration,
    pub(super) over: Sender<()>,
}

impl Courier {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        let (http, timeout) = (self.office.http.clone(), self.timeout);
        let exchange = async move {
            let fetch = Box::pin(http.fetch(request, MAX_ANSWER_BYTES));
            tokio::time::timeout(timeout, fetch).await
        };
        // The thread that waits here is one of the SDK, and has no runtime.
        match self.runtime.spawn(exchange).await {
            Ok(Ok(Ok(answer))) => {
                let status = answer.status();
                if !status.is_success() {
                    self.failed(&format!("the collector answered with HTTP {status}"));
                }
                Ok(answer)
            }
            Ok(Ok(Err(error))) => {
                self.failed(&chain(&error));
                Err(error.into())
            }
            Ok(Err(elapsed)) => {
                self.failed("the collector takes too long");
                Err(elapsed.into())
            }
            // The program ends, and has stopped waiting.
            Err(ended) => Err(ended.into()),
        }
    }

    fn failed(&self, reason: &str) {
        self.office.complain(reason);
        if self.office.is_closing.load(Ordering::SeqCst) {
            // The exporter will try again, but the end of the program does not wait for that.
            let _nobody_waits = self.over.send(());
        }
    }
}

impl HttpClient for Courier {
    fn send_bytes<'a, 'sending>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'sending>>
    where
        'a: 'sending,
        Self: 'sending,
    {
        Box::pin(self.send(request))
    }
}
