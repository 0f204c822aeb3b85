//! An entry as keys and values in the order people like to read, for all languages it is written
//! in.

use std::collections::BTreeMap;

use cocode_core::{Dpop, Grant, Registration};
use jsonc_parser::cst::CstInputValue;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

use crate::entry::{Entry, OAuthEntry, Seconds, Text, Transport};
use crate::keys::SERVERS;

/// The longest line that is made of a list or a table.
const MAX_LINE: usize = 96;

/// What a key may hold.
enum Field<'a> {
    Text(&'a str),
    List(&'a [String]),
    Map(Vec<(&'a str, &'a str)>),
    Boolean(bool),
    Seconds(Seconds),
    SecondsMap(&'a BTreeMap<String, Seconds>),
    Integer(u16),
    Table(Vec<(&'static str, Self)>),
}

/// Everything an entry says.
fn fields(entry: &Entry) -> Vec<(&'static str, Field<'_>)> {
    let Entry {
        transport,
        command,
        args,
        env,
        env_vars,
        cwd,
        url,
        headers,
        env_http_headers,
        bearer_token_env_var,
        headers_helper,
        oauth,
        enabled,
        required,
        startup_timeout_sec,
        connect_timeout_sec,
        tool_timeout_sec,
        tool_timeouts_sec,
        tool_total_timeout_sec,
        enabled_tools,
        disabled_tools,
        protocol,
        isolation,
        always_load,
        trust_annotations,
        idle_stop_sec,
        sandbox,
        description,
    } = entry;
    let seconds = |given: Option<Seconds>| given.map(Field::Seconds);
    let all = [
        ("description", text(description.as_ref())),
        (
            "transport",
            transport.map(Transport::as_str).map(Field::Text),
        ),
        ("command", text(command.as_ref())),
        ("args", list(args)),
        ("cwd", text(cwd.as_ref())),
        ("env_vars", list(env_vars)),
        ("env", secrets(env)),
        ("url", text(url.as_ref())),
        ("bearer_token_env_var", text(bearer_token_env_var.as_ref())),
        ("headers_helper", text(headers_helper.as_ref())),
        ("headers", secrets(headers)),
        (
            "env_http_headers",
            map(env_http_headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))),
        ),
        ("oauth", oauth_fields(oauth)),
        ("enabled", enabled.map(Field::Boolean)),
        ("required", required.map(Field::Boolean)),
        ("startup_timeout_sec", seconds(*startup_timeout_sec)),
        ("connect_timeout_sec", seconds(*connect_timeout_sec)),
        ("tool_timeout_sec", seconds(*tool_timeout_sec)),
        (
            "tool_timeouts_sec",
            (!tool_timeouts_sec.is_empty()).then_some(Field::SecondsMap(tool_timeouts_sec)),
        ),
        ("tool_total_timeout_sec", seconds(*tool_total_timeout_sec)),
        ("enabled_tools", enabled_tools.as_deref().map(Field::List)),
        ("disabled_tools", list(disabled_tools)),
        ("protocol", text(protocol.as_ref())),
        ("isolation", text(isolation.as_ref())),
        ("always_load", always_load.map(Field::Boolean)),
        ("trust_annotations", trust_annotations.map(Field::Boolean)),
        ("idle_stop_sec", seconds(*idle_stop_sec)),
        ("sandbox", text(sandbox.as_ref())),
    ];
    let given = all
        .into_iter()
        .filter_map(|(key, field)| field.map(|field| (key, field)));
    given.collect()
}

fn text(value: Option<&String>) -> Option<Field<'_>> {
    value.map(|text| Field::Text(text))
}

fn list(values: &[String]) -> Option<Field<'_>> {
    (!values.is_empty()).then_some(Field::List(values))
}

fn secrets(values: &BTreeMap<String, Text>) -> Option<Field<'_>> {
    let pairs = values.iter();
    map(pairs.map(|(name, value)| (name.as_str(), value.0.as_str())))
}

fn map<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Option<Field<'a>> {
    let pairs: Vec<_> = pairs.collect();
    (!pairs.is_empty()).then_some(Field::Map(pairs))
}

fn oauth_fields(oauth: &OAuthEntry) -> Option<Field<'_>> {
    let OAuthEntry {
        client_id,
        client_secret_env,
        callback_port,
        callback_url,
        scopes,
        resource,
        registration,
        client_metadata_url,
        issuer,
        grant,
        private_key_file,
        private_key_env,
        signing_algorithm,
        assertion_env,
        assertion_file,
        assertion_command,
        idp_issuer,
        idp_token_endpoint,
        idp_client_id,
        idp_client_secret_env,
        dpop,
        allow_private_network,
    } = oauth;
    let registration = registration.map(Registration::as_str);
    let all = [
        ("grant", grant.map(Grant::as_str).map(Field::Text)),
        ("registration", registration.map(Field::Text)),
        ("client_metadata_url", text(client_metadata_url.as_ref())),
        ("client_id", text(client_id.as_ref())),
        ("client_secret_env", text(client_secret_env.as_ref())),
        ("private_key_file", text(private_key_file.as_ref())),
        ("private_key_env", text(private_key_env.as_ref())),
        ("signing_algorithm", text(signing_algorithm.as_ref())),
        ("issuer", text(issuer.as_ref())),
        ("callback_port", callback_port.map(Field::Integer)),
        ("callback_url", text(callback_url.as_ref())),
        ("scopes", list(scopes)),
        ("resource", text(resource.as_ref())),
        ("assertion_env", text(assertion_env.as_ref())),
        ("assertion_file", text(assertion_file.as_ref())),
        ("assertion_command", text(assertion_command.as_ref())),
        ("idp_issuer", text(idp_issuer.as_ref())),
        ("idp_token_endpoint", text(idp_token_endpoint.as_ref())),
        ("idp_client_id", text(idp_client_id.as_ref())),
        (
            "idp_client_secret_env",
            text(idp_client_secret_env.as_ref()),
        ),
        ("dpop", dpop.map(Dpop::as_str).map(Field::Text)),
        (
            "allow_private_network",
            allow_private_network.map(Field::Boolean),
        ),
    ];
    let given: Vec<_> = all
        .into_iter()
        .filter_map(|(key, field)| field.map(|field| (key, field)))
        .collect();
    (!given.is_empty()).then_some(Field::Table(given))
}

/// The lines of `[mcp_servers.NAME]`.
pub(super) fn toml_block(name: &str, entry: &Entry) -> String {
    let mut server = Table::new();
    let mut tables = Vec::new();
    for (key, field) in fields(entry) {
        let value = toml_value(&field);
        let is_long = key.len() + 3 + value.to_string().len() > MAX_LINE;
        match value {
            Value::InlineTable(inline) if is_long => tables.push((key, inline.into_table())),
            Value::Array(list) if is_long => {
                server.insert(key, Item::Value(Value::Array(one_by_line(list))));
            }
            value => {
                server.insert(key, Item::Value(value));
            }
        }
    }
    for (key, mut table) in tables {
        table.decor_mut().set_prefix("\n");
        server.insert(key, Item::Table(table));
    }
    server.decor_mut().set_prefix("");
    let mut servers = Table::new();
    servers.set_implicit(true);
    servers.insert(name, Item::Table(server));
    let mut document = DocumentMut::new();
    document.insert(SERVERS, Item::Table(servers));
    document.to_string()
}

/// An entry on one line, for where tables are written so.
pub(super) fn toml_inline(entry: &Entry) -> Value {
    Value::InlineTable(inline_of(&fields(entry)))
}

/// A text on one line. The writer would rather have several, whose ends depend on the file.
pub(super) fn toml_text(text: &str) -> Value {
    let value = Value::from(text);
    if !value.to_string().contains('\n') {
        return value;
    }
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            control if control.is_control() => {
                let code = format!("\\U{:08X}", u32::from(control));
                quoted.push_str(&code);
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted.parse().unwrap_or(value)
}

fn toml_value(field: &Field<'_>) -> Value {
    match field {
        Field::Text(text) => toml_text(text),
        Field::List(texts) => {
            let list: Array = texts.iter().map(|text| toml_text(text)).collect();
            Value::Array(list)
        }
        Field::Map(pairs) => {
            let mut table = InlineTable::new();
            for (key, text) in pairs {
                table.insert(*key, toml_text(text));
            }
            Value::InlineTable(table)
        }
        Field::Boolean(truth) => Value::from(*truth),
        Field::Seconds(seconds) => toml_seconds(*seconds),
        Field::SecondsMap(map) => {
            let mut table = InlineTable::new();
            for (key, seconds) in *map {
                table.insert(key, toml_seconds(*seconds));
            }
            Value::InlineTable(table)
        }
        Field::Integer(number) => Value::from(i64::from(*number)),
        Field::Table(fields) => Value::InlineTable(inline_of(fields)),
    }
}

fn toml_seconds(Seconds(seconds): Seconds) -> Value {
    match whole(seconds) {
        Some(whole) => Value::from(whole),
        None => Value::from(seconds),
    }
}

fn inline_of(fields: &[(&'static str, Field<'_>)]) -> InlineTable {
    let mut table = InlineTable::new();
    for (key, field) in fields {
        table.insert(*key, toml_value(field));
    }
    table
}

fn one_by_line(mut list: Array) -> Array {
    for value in list.iter_mut() {
        value.decor_mut().set_prefix("\n    ");
    }
    list.set_trailing("\n");
    list.set_trailing_comma(true);
    list
}

/// An entry in the spelling of `.mcp.json`.
pub(super) fn json_object(entry: &Entry) -> CstInputValue {
    json_fields(fields(entry))
}

fn json_fields(fields: Vec<(&'static str, Field<'_>)>) -> CstInputValue {
    let pairs = fields.into_iter().map(|(key, field)| match (key, field) {
        ("transport", field) => ("type".to_owned(), json_value(field)),
        // As other tools spell it.
        ("enabled", Field::Boolean(enabled)) => {
            ("disabled".to_owned(), CstInputValue::Bool(!enabled))
        }
        ("tool_timeout_sec", Field::Seconds(seconds)) => match millis(seconds) {
            Some(millis) => {
                let millis = CstInputValue::Number(millis.to_string());
                ("timeout".to_owned(), millis)
            }
            None => (camel_case(key), json_value(Field::Seconds(seconds))),
        },
        (key, field) => (camel_case(key), json_value(field)),
    });
    CstInputValue::Object(pairs.collect())
}

fn json_value(field: Field<'_>) -> CstInputValue {
    let text = |text: &str| CstInputValue::String(text.to_owned());
    match field {
        Field::Text(value) => text(value),
        Field::List(texts) => CstInputValue::Array(texts.iter().map(|value| text(value)).collect()),
        Field::Map(pairs) => {
            let pairs = pairs
                .into_iter()
                .map(|(key, value)| (key.to_owned(), text(value)));
            CstInputValue::Object(pairs.collect())
        }
        Field::Boolean(truth) => CstInputValue::Bool(truth),
        Field::Seconds(seconds) => json_seconds(seconds),
        Field::SecondsMap(map) => {
            let pairs = map.iter();
            let pairs = pairs.map(|(key, seconds)| (key.clone(), json_seconds(*seconds)));
            CstInputValue::Object(pairs.collect())
        }
        Field::Integer(number) => CstInputValue::Number(number.to_string()),
        Field::Table(fields) => json_fields(fields),
    }
}

fn json_seconds(Seconds(seconds): Seconds) -> CstInputValue {
    CstInputValue::Number(match whole(seconds) {
        Some(whole) => whole.to_string(),
        None => serde_json::Value::from(seconds).to_string(),
    })
}

/// A number of milliseconds that means exactly this number of seconds.
fn millis(seconds: Seconds) -> Option<i64> {
    let millis = whole((seconds.0 * 1000.0).round())?;
    #[expect(clippy::cast_precision_loss, reason = "compared right here")]
    let again = Seconds::from_millis(millis as f64)?;
    (again == seconds).then_some(millis)
}

/// A number without a fraction, if it is one, and small enough to be exact.
fn whole(number: f64) -> Option<i64> {
    let is_exact = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
    let whole = number as i64;
    is_exact.then_some(whole)
}

fn camel_case(key: &str) -> String {
    let mut words = key.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut characters = word.chars();
        camel.extend(characters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(characters.as_str());
    }
    camel
}
