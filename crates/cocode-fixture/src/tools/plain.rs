//! Tools that need nothing and return the same each time.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::call::text;
use crate::resources::PNG;

/// Forty-four bytes of header and one sample of silence.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==";

pub(super) fn run(name: &str) -> Option<CallToolResult> {
    Some(match name {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => {
            CallToolResult::success(vec![ContentBlock::image(PNG, "image/png")])
        }
        "test_audio_content" => {
            CallToolResult::success(vec![ContentBlock::audio(WAV, "audio/wav")])
        }
        "test_embedded_resource" => {
            let resource = ResourceContents::text(
                "This is an embedded resource content.",
                "test://embedded-resource",
            );
            CallToolResult::success(vec![ContentBlock::resource(
                resource.with_mime_type("text/plain"),
            )])
        }
        "test_multiple_content_types" => {
            let resource = ResourceContents::text(
                r#"{"test":"data","value":123}"#,
                "test://mixed-content-resource",
            );
            CallToolResult::success(vec![
                ContentBlock::text("Multiple content types test:"),
                ContentBlock::image(PNG, "image/png"),
                ContentBlock::resource(resource.with_mime_type("application/json")),
            ])
        }
        "test_error_handling" => CallToolResult::error(vec![ContentBlock::text(
            "This tool intentionally returns an error for testing",
        )]),
        _ => return None,
    })
}
