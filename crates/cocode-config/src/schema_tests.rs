//! That the published schemas are those of the code, and that they are closed.

use std::path::Path;

use serde_json::Value;

use super::{SchemaKind, schema};
use crate::keys::{JSON_ONLY, OAUTH, SERVER};
use crate::settings::{POLICY, SETTINGS};

fn tree(kind: SchemaKind) -> Value {
    serde_json::from_str(&schema(kind)).unwrap()
}

#[test]
fn the_published_schemas_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    for kind in SchemaKind::ALL {
        let name = kind.as_str();
        let published = std::fs::read_to_string(folder.join(format!("{name}.schema.json")));
        assert!(
            published.is_ok_and(|published| published == schema(kind)),
            "docs/schema/{name}.schema.json is not up to date; write it anew with \
             `cocode config schema {name} > docs/schema/{name}.schema.json`"
        );
    }
}

#[test]
fn every_key_is_in_its_schema_with_its_description() {
    let mcp = tree(SchemaKind::Mcp);
    let server = "/properties/mcp_servers/additionalProperties/properties";
    let server = mcp.pointer(server).unwrap();
    for key in SERVER {
        let is_there = server.get(key.name).is_some();
        assert_eq!(is_there, !JSON_ONLY.contains(&key.name), "{}", key.name);
        for alias in key.aliases {
            assert!(server.get(alias).is_some(), "{alias}");
        }
    }
    for key in OAUTH {
        let about = server.pointer(&format!("/oauth/properties/{}/description", key.name));
        assert_eq!(about.unwrap(), key.about);
    }
    for (kind, keys) in [(SchemaKind::Config, SETTINGS), (SchemaKind::Policy, POLICY)] {
        let tree = tree(kind);
        for key in keys {
            let about = tree
                .pointer(&format!("/properties/{}/description", key.name))
                .unwrap();
            assert_eq!(about, key.about);
        }
    }
}

#[test]
fn objects_have_no_keys_but_theirs_and_every_key_is_described() {
    fn check(value: &Value, place: &str) {
        if let Value::Object(object) = value {
            if let Some(Value::Object(properties)) = object.get("properties") {
                // A condition closes nothing.
                if !place.ends_with("/if") {
                    let is_closed = object.get("additionalProperties") == Some(&Value::Bool(false));
                    assert!(is_closed, "{place}");
                    for (name, property) in properties {
                        assert!(property.get("description").is_some(), "{place}/{name}");
                    }
                }
            }
            for (key, value) in object {
                check(value, &format!("{place}/{key}"));
            }
        }
        if let Value::Array(values) = value {
            for value in values {
                check(value, place);
            }
        }
    }
    for kind in SchemaKind::ALL {
        check(&tree(kind), kind.as_str());
    }
}

#[test]
fn kinds_are_found_by_name() {
    for kind in SchemaKind::ALL {
        assert_eq!(SchemaKind::from_name(kind.as_str()), Some(kind));
    }
    assert_eq!(SchemaKind::from_name("other"), None);
}
