//! Resources that can be read.

use rmcp::ErrorData;
use rmcp::model::{CacheScope, ReadResourceResult, ResourceContents};
use serde_json::json;

/// A red pixel.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

pub(crate) const WATCHED: &str = "test://watched-resource";

const TTL_MS: u64 = 5_000;

pub(crate) fn read(uri: &str, modern: bool) -> Result<ReadResourceResult, ErrorData> {
    let contents = match uri {
        "test://static-text" => {
            ResourceContents::text("This is the content of the static text resource.", uri)
                .with_mime_type("text/plain")
        }
        "test://static-binary" => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        WATCHED => {
            ResourceContents::text("Watched resource content.", uri).with_mime_type("text/plain")
        }
        _ => {
            let Some(id) = templated(uri) else {
                return Err(ErrorData::resource_not_found(
                    "Resource not found",
                    Some(json!({ "uri": uri })),
                ));
            };
            let text = json!({
                "id": id,
                "templateTest": true,
                "data": format!("Data for ID: {id}"),
            });
            ResourceContents::text(text.to_string(), uri).with_mime_type("application/json")
        }
    };
    let result = ReadResourceResult::new(vec![contents]);
    Ok(if modern {
        result
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Private)
    } else {
        result
    })
}

/// The id in a URI that the template makes.
fn templated(uri: &str) -> Option<&str> {
    uri.strip_prefix("test://template/")?
        .strip_suffix("/data")
        .filter(|id| !id.is_empty() && !id.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::templated;

    #[test]
    fn only_one_segment_is_an_id() {
        assert_eq!(templated("test://template/123/data"), Some("123"));
        assert_eq!(templated("test://template//data"), None);
        assert_eq!(templated("test://template/1/2/data"), None);
        assert_eq!(templated("test://template/123"), None);
    }
}
