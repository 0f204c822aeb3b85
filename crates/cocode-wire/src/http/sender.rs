//! Sends requests with whatever lets them in, and answers refusals.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use reqwest::Response;
use url::Url;

use super::client::{HttpClient, HttpSetupError};
use super::response::{challenge, transport_error};
use crate::credentials::{Credentials, Refusal, RequestLine};
use crate::error::LinkError;
use crate::limits::MAX_REFUSALS;

/// A client of one server, and what lets it in there.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    client: reqwest::Client,
    credentials: Option<Arc<dyn Credentials>>,
}

impl Sender {
    pub(super) fn new(
        client: &HttpClient,
        url: &Url,
        credentials: Option<Arc<dyn Credentials>>,
    ) -> Result<Self, HttpSetupError> {
        let client = client.for_url(url)?;
        Ok(Self {
            client,
            credentials,
        })
    }

    /// Sends a request, and sends it again as long as its credentials have an answer to a refusal.
    /// A request that was refused has not been carried out, so that nothing happens twice. Any
    /// status is an answer.
    pub(super) async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Response, LinkError> {
        let Some(credentials) = &self.credentials else {
            return self.send_once(method, url, headers, body).await;
        };
        let request = RequestLine {
            method: &method,
            url,
        };
        let mut before = 0;
        loop {
            let mut headers = headers.clone();
            let shown = credentials.headers(request).await;
            let shown = shown.map_err(LinkError::Credentials)?;
            headers.extend(shown.clone());
            let response = self
                .send_once(method.clone(), url, headers, body.clone())
                .await?;
            if !matches!(
                response.status(),
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
            ) {
                credentials.answered(response.headers());
                return Ok(response);
            }
            let refusal = Refusal {
                request,
                sent: &shown,
                challenge: &challenge(response.status(), response.headers()),
                headers: response.headers(),
                before,
            };
            let again = credentials.refused(refusal).await;
            if !again.map_err(LinkError::Credentials)? || before >= MAX_REFUSALS {
                return Ok(response);
            }
            before += 1;
        }
    }

    async fn send_once(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Response, LinkError> {
        let mut request = self.client.request(method, url.clone()).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let sent = request.send().await;
        sent.map_err(|error| transport_error(url, error))
    }
}
