//! What servers tell, in a form that says which of them it was.

use cocode_core::ServerName;
use cocode_wire::RawJson;
use cocode_wire::encode::push_member;
use cocode_wire::members::Members;

/// A log message whose `logger` says which server it is of: `server`, or `server/logger` where the
/// server has names for its loggers. Nothing if the parameters are no object.
pub(crate) fn message(server: &ServerName, params: Option<&RawJson>) -> Option<RawJson> {
    let params = params?;
    let members: Members<'_> = params.decode().ok()?;
    let logger = members.get("logger");
    let theirs: Option<String> = logger.and_then(|logger| serde_json::from_str(logger.get()).ok());
    let ours = match theirs {
        Some(theirs) => format!("{server}/{theirs}"),
        None => server.to_string(),
    };
    let ours = RawJson::of(&ours).ok()?;
    if let Some(logger) = logger {
        return Some(params.with_part(logger, &ours));
    }
    let mut text = b"{".to_vec();
    push_member(&mut text, "logger", ours.as_str());
    for (key, value) in &members.0 {
        text.push(b',');
        push_member(&mut text, key, value.get());
    }
    text.push(b'}');
    RawJson::parse(text).ok()
}

#[cfg(test)]
mod tests {
    use cocode_wire::RawJson;

    #[track_caller]
    fn check(params: &str, expected: Option<&str>) {
        let params = RawJson::parse(params.to_owned()).unwrap();
        let retold = super::message(&"files".parse().unwrap(), Some(&params));
        assert_eq!(retold.as_ref().map(RawJson::as_str), expected);
    }

    #[test]
    fn a_message_says_whose_it_is() {
        check(
            r#"{"level":"info","logger":"db","data":1.10}"#,
            Some(r#"{"level":"info","logger":"files/db","data":1.10}"#),
        );
        check(
            r#"{"level":"info","data":1.10}"#,
            Some(r#"{"logger":"files","level":"info","data":1.10}"#),
        );
        check(
            r#"{"logger":null,"data":1}"#,
            Some(r#"{"logger":"files","data":1}"#),
        );
        check("[]", None);
    }
}
