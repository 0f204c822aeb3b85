//! Plain HTTP exchanges that are no link: one request, and the whole of its answer.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use url::Url;

use super::addresses::AddressRefused;
use super::client::{HttpClient, HttpSetupError};
use super::response::{read_body, transport_error};
use crate::error::LinkError;

/// Why a plain exchange has no answer.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The address is none of HTTP.
    #[error("not an address of HTTP")]
    Address,
    /// There is no client.
    #[error(transparent)]
    Setup(#[from] HttpSetupError),
    /// What the name stands for may not be connected to.
    #[error(transparent)]
    Refused(#[from] AddressRefused),
    /// The exchange failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The answer has not begun in time.
    #[error("no answer has begun within {} s", after.as_secs())]
    NoAnswer {
        /// The time that there was.
        after: Duration,
    },
    /// The answer has begun, and then nothing more came of it.
    #[error("nothing more of the answer came for {} s", after.as_secs())]
    Silent {
        /// How long.
        after: Duration,
    },
}

impl HttpClient {
    /// Sends a request and reads its answer to the end, but no more than `max_bytes`. Whatever the
    /// status is, it is an answer. There is no time limit beside that for connecting.
    pub async fn fetch(
        &self,
        request: Request<Bytes>,
        max_bytes: usize,
    ) -> Result<Response<Bytes>, FetchError> {
        let response = self.send(request).await?;
        let head = head(&response);
        let body = read_body(response, max_bytes).await?;
        Ok(head.map(|()| body))
    }

    /// Sends a request and takes only the status and the headers of the answer: its body may never
    /// end, as that of a stream of events.
    pub async fn fetch_head(&self, request: Request<Bytes>) -> Result<Response<()>, FetchError> {
        Ok(head(&self.send(request).await?))
    }

    pub(super) async fn send(
        &self,
        request: Request<Bytes>,
    ) -> Result<reqwest::Response, FetchError> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string()).map_err(|_error| FetchError::Address)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(FetchError::Address);
        }
        self.check_target(&url).await?;
        let client = self.for_url(&url)?;
        let sending = client
            .request(parts.method, url.clone())
            .headers(parts.headers)
            .body(body)
            .send();
        sending
            .await
            .map_err(|error| match AddressRefused::behind(&error) {
                Some(refused) => refused.clone().into(),
                None => transport_error(&url, error).into(),
            })
    }
}

pub(super) fn head(response: &reqwest::Response) -> Response<()> {
    let mut answer = Response::new(());
    *answer.status_mut() = response.status();
    *answer.headers_mut() = response.headers().clone();
    answer
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::FetchError;
    use crate::error::LinkError;
    use crate::http::client::HttpClient;

    /// What a server that answers with `answer` gets, and what becomes of the request.
    async fn exchange(answer: &str, max_bytes: usize) -> (String, Result<String, FetchError>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let request = Request::post(format!("http://{address}/path?query"))
            .header("X-Test", "yes")
            .body(Bytes::from_static(b"\x00body"))
            .unwrap();
        let client = HttpClient::default();
        let served = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut heard = Vec::new();
            while !heard.ends_with(b"\x00body") {
                assert!(socket.read_buf(&mut heard).await.unwrap() > 0);
            }
            socket.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(heard).unwrap()
        };
        let (fetched, heard) = tokio::join!(client.fetch(request, max_bytes), served);
        let fetched = fetched.map(|answer| {
            let body = String::from_utf8_lossy(answer.body());
            let header = answer.headers().get("x-answer");
            let header = header.map_or("-", |value| value.to_str().unwrap());
            format!("{} {header} {body}", answer.status().as_u16())
        });
        (heard, fetched)
    }

    #[tokio::test]
    async fn a_request_goes_out_whole_and_any_status_is_an_answer() {
        let answer = "HTTP/1.1 503 No\r\nX-Answer: a\r\nContent-Length: 5\r\n\r\nlater";
        let (heard, fetched) = exchange(answer, 5).await;
        assert!(
            heard.starts_with("POST /path?query HTTP/1.1\r\n"),
            "{heard}"
        );
        assert!(heard.contains("x-test: yes\r\n"), "{heard}");
        assert_eq!(fetched.unwrap(), "503 a later");
    }

    #[tokio::test]
    async fn an_answer_over_the_cap_is_refused() {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nlater";
        let (_, fetched) = exchange(answer, 4).await;
        let too_large = |error: &FetchError| {
            matches!(
                error,
                FetchError::Link(LinkError::AnswerTooLarge { limit: 4 })
            )
        };
        assert!(fetched.as_ref().is_err_and(too_large), "{fetched:?}");
    }

    #[tokio::test]
    async fn the_head_of_an_answer_is_there_before_its_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let request = Request::get(format!("http://{address}/")).body(Bytes::new());
        let client = HttpClient::default();
        let fetching = client.fetch_head(request.unwrap());
        let serving = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut heard = Vec::new();
            while !heard.ends_with(b"\r\n\r\n") {
                assert!(socket.read_buf(&mut heard).await.unwrap() > 0);
            }
            let answer = "HTTP/1.1 401 No\r\nX-Answer: a\r\nContent-Length: 5\r\n\r\n";
            socket.write_all(answer.as_bytes()).await.unwrap();
            socket
        };
        let (fetched, _still_open) = tokio::join!(fetching, serving);
        let head = fetched.unwrap();
        assert_eq!(
            (head.status().as_u16(), &head.headers()["x-answer"]),
            (401, &"a".parse().unwrap())
        );
    }

    #[tokio::test]
    async fn what_is_no_address_of_http_is_refused() {
        for address in ["ftp://host/", "/path", "host"] {
            let request = Request::get(address).body(Bytes::new()).unwrap();
            let fetched = HttpClient::default().fetch(request, 1).await;
            assert!(matches!(fetched, Err(FetchError::Address)), "{address}");
        }
    }
}
