//! Lists that clients have, and that may be others where another daemon goes on: who wants to hear
//! of that, and how they are told.

use serde::Deserialize;
use serde_json::value::RawValue;

/// Lists whose changes a client hears of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lists {
    tools: bool,
    prompts: bool,
    resources: bool,
}

impl Lists {
    /// Those that the answer to an introduction promises to tell of.
    pub(super) fn promised(answer: &[u8]) -> Self {
        #[derive(Default, Deserialize)]
        struct Answer {
            result: Introduced,
        }
        #[derive(Default, Deserialize)]
        struct Introduced {
            capabilities: Capabilities,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Capabilities {
            tools: Capability,
            prompts: Capability,
            resources: Capability,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Capability {
            list_changed: bool,
        }
        let answer: Answer = serde_json::from_slice(answer).unwrap_or_default();
        let Capabilities {
            tools,
            prompts,
            resources,
        } = answer.result.capabilities;
        Self {
            tools: tools.list_changed,
            prompts: prompts.list_changed,
            resources: resources.list_changed,
        }
    }

    /// Those that a subscription without a session is about.
    pub(super) fn wanted(listen: &[u8]) -> Self {
        #[derive(Default, Deserialize)]
        struct Listen {
            params: Params,
        }
        #[derive(Default, Deserialize)]
        struct Params {
            notifications: Filter,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Filter {
            tools_list_changed: bool,
            prompts_list_changed: bool,
            resources_list_changed: bool,
        }
        let listen: Listen = serde_json::from_slice(listen).unwrap_or_default();
        let filter = listen.params.notifications;
        Self {
            tools: filter.tools_list_changed,
            prompts: filter.prompts_list_changed,
            resources: filter.resources_list_changed,
        }
    }

    /// Says that they may be others, to a session or to a subscription.
    pub(super) fn tell_changed(self, to: &mut Vec<u8>, subscription: Option<&[u8]>) {
        let all = [
            (self.tools, "tools"),
            (self.prompts, "prompts"),
            (self.resources, "resources"),
        ];
        for (_, list) in all.into_iter().filter(|(is_heard, _)| *is_heard) {
            let begin =
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed""#);
            to.extend_from_slice(begin.as_bytes());
            if let Some(id) = subscription {
                to.extend_from_slice(
                    br#","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"#,
                );
                to.extend_from_slice(id);
                to.extend_from_slice(b"}}");
            }
            to.extend_from_slice(b"}\n");
        }
    }
}

/// Which subscription is acknowledged.
pub(super) fn acknowledged_id(line: &[u8]) -> Option<&[u8]> {
    #[derive(Deserialize)]
    struct Acknowledged<'a> {
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: Meta<'a>,
    }
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow, rename = "io.modelcontextprotocol/subscriptionId")]
        subscription: &'a RawValue,
    }
    let Acknowledged { params } = serde_json::from_slice(line).ok()?;
    Some(params.meta.subscription.get().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{Lists, acknowledged_id};

    fn told(lists: Lists, subscription: Option<&str>) -> String {
        let mut told = Vec::new();
        lists.tell_changed(&mut told, subscription.map(str::as_bytes));
        String::from_utf8(told).unwrap()
    }

    #[test]
    fn sessions_hear_of_what_they_were_promised() {
        let answer = br#"{"id":0,"result":{"capabilities":{"logging":{},
            "prompts":{"listChanged":true},"tools":{},
            "resources":{"subscribe":true,"listChanged":true}}}}"#;
        assert_eq!(
            told(Lists::promised(answer), None),
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\"}\n\
             {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}\n"
        );
        for nothing in [&b"{}"[..], b"odd", br#"{"result":{"capabilities":{}}}"#] {
            assert_eq!(Lists::promised(nothing), Lists::default());
        }
    }

    #[test]
    fn subscriptions_hear_of_what_they_want() {
        let listen = br#"{"id":"a","params":{"notifications":{"toolsListChanged":true,
            "promptsListChanged":false,"resourceSubscriptions":["x:1"]}}}"#;
        let said = told(Lists::wanted(listen), Some("\"a\""));
        assert_eq!(
            said,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":\
             {\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":\"a\"}}}\n"
        );
        assert_eq!(acknowledged_id(said.as_bytes()), Some(&b"\"a\""[..]));
    }
}
