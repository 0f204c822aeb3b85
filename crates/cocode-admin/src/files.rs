//! The files of the dashboard, which are part of the program.

use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use crate::random::text_of;
use crate::reply::typed;
use cocode_wire::serve::PageBody;

// `FILES`: the path of each file below `dashboard`, and what is in it.
include!(concat!(env!("OUT_DIR"), "/files.rs"));

struct File {
    path: &'static str,
    content: &'static [u8],
    kind: &'static str,
    tag: HeaderValue,
}

/// All files with their tags, by path.
static TAGGED: LazyLock<Vec<File>> = LazyLock::new(|| {
    let file = |(path, content): &(&'static str, &'static [u8])| {
        let digest = ring::digest::digest(&ring::digest::SHA256, content);
        let print = text_of(digest.as_ref());
        let tag = HeaderValue::try_from(format!("\"{print}\"")).ok()?;
        Some(File {
            path,
            content,
            kind: kind_of(path),
            tag,
        })
    };
    FILES.iter().filter_map(file).collect()
});

/// The answer to a request for a file, if there is one at that path.
pub(crate) fn file(path: &str, headers: &HeaderMap) -> Option<Response<PageBody>> {
    let wanted = match path.strip_prefix('/')? {
        "" => "index.html",
        path => path,
    };
    let file = TAGGED.iter().find(|file| file.path == wanted)?;
    let mut response = if is_known(headers, &file.tag) {
        let mut response = Response::new(PageBody::whole(Bytes::new()));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        let content = PageBody::whole(Bytes::from_static(file.content));
        typed(StatusCode::OK, file.kind, content)
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, file.tag.clone());
    // Kept, and asked about each time: another version of the gateway has other files.
    let asked = HeaderValue::from_static("no-cache");
    headers.insert(header::CACHE_CONTROL, asked);
    Some(response)
}

/// Whether a browser has the file already.
fn is_known(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let known = headers.get_all(header::IF_NONE_MATCH).iter();
    known
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|one| one.trim().trim_start_matches("W/"))
        .any(|one| one == "*" || one.as_bytes() == tag.as_bytes())
}

fn kind_of(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::{FILES, kind_of};

    #[test]
    fn every_file_of_the_dashboard_has_a_type() {
        assert!(FILES.iter().any(|(path, _)| *path == "index.html"));
        for (path, _) in FILES {
            assert_ne!(kind_of(path), "application/octet-stream", "{path}");
        }
    }
}
