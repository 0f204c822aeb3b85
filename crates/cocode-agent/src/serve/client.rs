//! Who calls, and what can be asked of them in return.

use std::sync::{Mutex, PoisonError};

use cocode_core::Revision;
use serde_json::Value;

/// A client, as it presented itself: at the beginning of its session, or with its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client {
    /// What it speaks.
    pub(super) revision: Revision,
    /// What it can do for us.
    pub(super) can: Abilities,
}

/// What a client can do for us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    /// Ask a person to fill in a form.
    pub(super) form: bool,
    /// Ask its model.
    pub(super) sampling: bool,
    /// Give tools to its model.
    pub(super) sampling_tools: bool,
}

impl Client {
    /// A client with these capabilities.
    pub(super) fn new(revision: Revision, capabilities: &Value) -> Self {
        let of = |value: &Value, name: &str| value.get(name).filter(|v| v.is_object()).cloned();
        let elicitation = of(capabilities, "elicitation");
        let elicitation = elicitation.filter(|_| revision >= Revision::V2025_06_18);
        // No mode at all means a form, which is how it was before there were modes.
        let form = elicitation.is_some_and(|modes| {
            of(&modes, "form").is_some() || modes.get("url").is_none_or(Value::is_null)
        });
        let sampling = of(capabilities, "sampling");
        let tools = sampling
            .as_ref()
            .is_some_and(|modes| of(modes, "tools").is_some());
        let can = Abilities {
            form,
            sampling: sampling.is_some(),
            sampling_tools: tools && revision >= Revision::V2025_11_25,
        };
        Self { revision, can }
    }
}

impl Abilities {
    /// Whether it can be asked this.
    pub(super) fn answers(self, method: &str) -> bool {
        match method {
            super::approval::METHOD => self.form,
            super::person::SAMPLING_METHOD => self.sampling,
            _ => false,
        }
    }
}

/// Who calls now: where requests stand alone, the one that brings an answer may present itself in
/// another way than the one that was asked.
#[derive(Debug)]
pub(super) struct Caller(Mutex<Client>);

impl Caller {
    pub(super) fn new(client: Client) -> Self {
        Self(Mutex::new(client))
    }

    pub(super) fn now(&self) -> Client {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_now(&self, client: Client) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }
}

#[cfg(test)]
mod tests {
    use cocode_core::Revision;
    use serde_json::json;

    use super::{Abilities, Client};

    fn can(revision: Revision, capabilities: &serde_json::Value) -> Abilities {
        Client::new(revision, capabilities).can
    }

    #[test]
    fn forms_are_known_since_2025_06_18_and_an_empty_object_means_them() {
        let empty = json!({ "elicitation": {} });
        assert!(!can(Revision::V2025_03_26, &empty).form);
        assert!(can(Revision::V2025_06_18, &empty).form);
        assert!(can(Revision::V2026_07_28, &empty).form);
        let both = json!({ "elicitation": { "form": {}, "url": {} } });
        assert!(can(Revision::V2025_11_25, &both).form);
        let url = json!({ "elicitation": { "url": {} } });
        assert!(!can(Revision::V2025_11_25, &url).form);
        assert!(!can(Revision::V2025_11_25, &json!({ "elicitation": true })).form);
        assert!(!can(Revision::V2025_11_25, &json!(null)).form);
    }

    #[test]
    fn models_of_clients_get_tools_only_if_they_say_so() {
        let plain = can(Revision::V2024_11_05, &json!({ "sampling": {} }));
        assert!(plain.sampling && !plain.sampling_tools);
        let tools = json!({ "sampling": { "tools": {} } });
        assert!(can(Revision::V2025_11_25, &tools).sampling_tools);
        assert!(!can(Revision::V2025_06_18, &tools).sampling_tools);
    }
}
