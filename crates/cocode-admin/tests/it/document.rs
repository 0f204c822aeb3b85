//! The document of the API, as tests read it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cocode_client::{Checked, CompiledSchema, RawJson};
use serde_json::{Value, json};

use crate::client::Place;

/// An operation of the document.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) method: http::Method,
    pub(crate) path: String,
    pub(crate) facts: Value,
}

impl Operation {
    pub(crate) fn is_changing(&self) -> bool {
        self.method != http::Method::GET
    }

    /// Whether everybody may use it.
    pub(crate) fn is_public(&self) -> bool {
        let ways = self.facts["security"].as_array().unwrap();
        ways.is_empty() || ways.contains(&json!({}))
    }

    pub(crate) fn announces(&self, status: u16) -> bool {
        !self.facts["responses"][status.to_string()].is_null()
    }
}

pub(crate) async fn document(place: &Place) -> Value {
    let answer = place.get("/api/v1/openapi.json").admin().send().await;
    assert_eq!(answer.status, 200);
    answer.json()
}

pub(crate) fn operations(document: &Value) -> Vec<Operation> {
    let paths = document["paths"].as_object().unwrap();
    let of = |(path, methods): (&String, &Value)| {
        let methods = methods.as_object().unwrap().clone();
        let path = path.clone();
        methods.into_iter().map(move |(method, facts)| Operation {
            id: facts["operationId"].as_str().unwrap().to_owned(),
            method: method.to_uppercase().parse().unwrap(),
            path: path.clone(),
            facts,
        })
    };
    paths.iter().flat_map(of).collect()
}

/// What a reference leads to.
fn referred<'a>(document: &'a Value, reference: &str) -> &'a Value {
    let pointer = reference.strip_prefix('#');
    let found = pointer.and_then(|pointer| document.pointer(pointer));
    found.unwrap_or_else(|| panic!("{reference} leads nowhere"))
}

thread_local! {
    /// Compiling takes longer than checking, and most answers are alike.
    static COMPILED: RefCell<BTreeMap<String, CompiledSchema>> = RefCell::default();
}

fn compiled(document: &Value, schema: &Value) -> CompiledSchema {
    COMPILED.with_borrow_mut(|known| {
        let compile = || {
            let mut schema = schema.clone();
            schema["components"] = document["components"].clone();
            CompiledSchema::compile(&RawJson::of(&schema).unwrap()).unwrap()
        };
        known
            .entry(schema.to_string())
            .or_insert_with(compile)
            .clone()
    })
}

/// Says what about an answer is not as the document says, by its schema.
pub(crate) fn check_answer(document: &Value, operation: &Operation, status: u16, value: &Value) {
    let mut answer = &operation.facts["responses"][status.to_string()];
    if let Some(reference) = answer["$ref"].as_str() {
        answer = referred(document, reference);
    }
    let schema = &answer["content"]["application/json"]["schema"];
    assert!(schema.is_object(), "{operation:?} {status} has no schema");
    let schema = compiled(document, schema);
    let checked = schema.examine(&RawJson::of(value).unwrap());
    assert_eq!(checked, Checked::Fits, "{operation:?} {status}: {value}");
}

#[tokio::test]
async fn the_document_names_everything_it_refers_to() {
    let document = document(&Place::new()).await;
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], "1.2.3");
    let mut waiting = vec![&document];
    let mut n_references = 0;
    while let Some(value) = waiting.pop() {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get("$ref") {
                    n_references += 1;
                    assert!(referred(&document, reference).is_object(), "{reference}");
                }
                waiting.extend(members.values());
            }
            Value::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
    assert!(n_references > 100, "{n_references}");
}

#[tokio::test]
async fn the_page_about_the_api_lists_every_route_and_no_other() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/management.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let told: BTreeSet<_> = rows
        .filter_map(|row| row.split('`').next())
        .filter(|code| code.contains(" /"))
        .map(str::to_owned)
        .collect();
    let document = document(&Place::new()).await;
    let there: BTreeSet<_> = operations(&document)
        .iter()
        .map(|one| format!("{} {}", one.method, one.path.replace("/api/v1", "")))
        .collect();
    assert_eq!(told, there);
}

#[tokio::test]
async fn bodies_are_closed_and_answers_are_open() {
    let document = document(&Place::new()).await;
    for operation in operations(&document) {
        let body = &operation.facts["requestBody"]["content"]["application/json"]["schema"];
        let Some(reference) = body["$ref"].as_str() else {
            continue;
        };
        let schema = referred(&document, reference);
        assert_eq!(schema["additionalProperties"], false, "{}", operation.id);
    }
    let server = &document["components"]["schemas"]["Server"];
    assert!(server["additionalProperties"].is_null());
}

#[tokio::test]
async fn what_events_need_and_tell_is_described() {
    let document = document(&Place::new()).await;
    let listen = &document["paths"]["/api/v1/events"]["get"];
    let parameters = listen["parameters"].as_array().unwrap();
    let places: Vec<_> = parameters
        .iter()
        .map(|one| (one["in"].as_str().unwrap(), one["name"].as_str().unwrap()))
        .collect();
    assert_eq!(places, [("query", "inbox"), ("header", "Last-Event-ID")]);
    let events = &listen["responses"]["200"]["content"]["text/event-stream"]["schema"]["oneOf"];
    let mut events = events.as_array().unwrap().iter();
    let server = events.find(|one| one["properties"]["event"]["const"] == "server");
    let told = &server.unwrap()["properties"]["data"]["contentSchema"]["anyOf"];
    for (index, name) in ["Server", "Removed"].into_iter().enumerate() {
        let reference = format!("#/components/schemas/{name}");
        assert_eq!(told[index]["$ref"], reference);
    }
}
