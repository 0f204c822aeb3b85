//! When two specifications mean the same server, and when a connection made for one still serves
//! for the other. Everything is taken apart here by name, so that whoever adds a field decides.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::{
    Grant, OAuth, Program, Reach, Registration, Remote, RemoteTransport, Sandbox, ServerSpec,
    Template, TemplatePart,
};
use crate::protocol::Protocol;

/// Changes with the meaning of the bytes below it, so that old fingerprints match nothing new.
const FORM: &str = "cocode server 1";

impl ServerSpec {
    /// What tells servers apart: a SHA-256, in hexadecimal, over everything that decides which
    /// server is reached and as whom. The same on every run and machine, so that it may name what
    /// is kept on a disk.
    ///
    /// The name counts, because secrets and sign-ins are kept by it. What is looked up only when the
    /// server is contacted (variables, secrets, the directory we are in) does not.
    pub fn fingerprint(&self) -> String {
        let Self {
            name,
            reach,
            required: _,
            startup_timeout: _,
            connect_timeout: _,
            tool_timeout: _,
            tool_timeouts: _,
            tool_total_timeout: _,
            tools: _,
            protocol,
            isolation: _,
            always_load: _,
            trust_annotations: _,
            idle_stop: _,
            sandbox,
            description: _,
        } = self;
        let mut digest = Fields::new();
        digest.text(name.as_str());
        match reach {
            Reach::Program(program) => digest.program(program),
            Reach::Remote(remote) => digest.remote(remote),
        }
        digest.text(match protocol {
            Protocol::Auto => "auto",
            Protocol::Legacy => "legacy",
            Protocol::Modern => "modern",
            Protocol::Exact(revision) => revision.as_str(),
        });
        digest.text(match sandbox {
            Sandbox::Off => "off",
            Sandbox::ReadOnly => "read-only",
            Sandbox::WorkspaceWrite => "workspace-write",
        });
        // Last, because only so may fields be missing without others taking their place.
        if let Reach::Remote(remote) = reach {
            digest.sign_in(&remote.oauth);
        }
        digest.hexadecimal()
    }

    /// Whether a connection made for this does not serve for the other: they differ in more than
    /// what can be changed while a server runs.
    pub fn needs_restart(&self, other: &Self) -> bool {
        let Self {
            name,
            reach,
            required: _,
            startup_timeout: _,
            // Ends attempts, and there is a connection.
            connect_timeout: _,
            tool_timeout: _,
            tool_timeouts: _,
            tool_total_timeout: _,
            tools: _,
            protocol,
            isolation,
            always_load: _,
            trust_annotations: _,
            idle_stop: _,
            sandbox,
            description: _,
        } = self;
        *name != other.name
            || *reach != other.reach
            || *protocol != other.protocol
            || *isolation != other.isolation
            || *sandbox != other.sandbox
    }
}

/// Fields one after the other, each with its length before it: no two lists of fields have the same
/// bytes.
struct Fields(Sha256);

impl Fields {
    fn new() -> Self {
        let mut fields = Self(Sha256::new());
        fields.text(FORM);
        fields
    }

    fn hexadecimal(self) -> String {
        let digits = |byte: u8| [byte >> 4, byte & 15];
        let digest = self.0.finalize();
        let digits = digest.iter().copied().flat_map(digits);
        digits
            .filter_map(|digit| char::from_digit(u32::from(digit), 16))
            .collect()
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn count(&mut self, count: usize) {
        self.0.update((count as u64).to_be_bytes());
    }

    /// One or none, as a list.
    fn optional(&mut self, text: Option<&str>) {
        self.texts(text.into_iter());
    }

    fn texts<'a>(&mut self, texts: impl ExactSizeIterator<Item = &'a str>) {
        self.count(texts.len());
        texts.for_each(|text| self.text(text));
    }

    fn path(&mut self, path: Option<&PathBuf>) {
        self.count(usize::from(path.is_some()));
        if let Some(path) = path {
            self.bytes(path_bytes(path));
        }
    }

    fn templates(&mut self, templates: &BTreeMap<String, Template>) {
        self.count(templates.len());
        for (name, Template { parts }) in templates {
            self.text(name);
            self.count(parts.len());
            for part in parts {
                let (kind, text) = match part {
                    TemplatePart::Literal(text) => ("literal", text),
                    TemplatePart::Keyring(name) => ("keyring", name),
                    TemplatePart::Command(command) => ("command", command),
                };
                self.text(kind);
                self.text(text);
            }
        }
    }

    fn program(&mut self, program: &Program) {
        let Program {
            command,
            args,
            env,
            env_vars,
            cwd,
            base,
            beside,
        } = program;
        self.text("program");
        self.text(command);
        self.texts(args.iter().map(String::as_str));
        self.templates(env);
        self.texts(env_vars.iter().map(String::as_str));
        for path in [cwd, base, beside] {
            self.path(path.as_ref());
        }
    }

    fn remote(&mut self, remote: &Remote) {
        let Remote {
            transport,
            url,
            headers,
            env_headers,
            bearer_token_env_var,
            headers_helper,
            oauth,
            base,
        } = remote;
        self.text("remote");
        self.text(match transport {
            RemoteTransport::HttpWithFallback => "http or sse",
            RemoteTransport::Http => "http",
            RemoteTransport::Sse => "sse",
            RemoteTransport::WebSocket => "ws",
            RemoteTransport::Unix => "unix",
        });
        self.text(url);
        self.templates(headers);
        self.count(env_headers.len());
        for (header, variable) in env_headers {
            self.text(header);
            self.text(variable);
        }
        for text in [bearer_token_env_var, headers_helper, &oauth.client_id] {
            self.optional(text.as_deref());
        }
        self.optional(oauth.client_secret_env.as_deref());
        self.texts(oauth.scopes.iter().map(String::as_str));
        self.optional(oauth.resource.as_deref());
        self.path(base.as_ref());
    }

    /// What else decides as whom we sign in, each with its name, and only where it was said: a
    /// server of which nothing is said keeps the fingerprint that it had before there was this.
    fn sign_in(&mut self, oauth: &OAuth) {
        let OAuth {
            // These four are part of every address.
            client_id: _,
            client_secret_env: _,
            scopes: _,
            resource: _,
            // Where the answer to signing in arrives says nothing about the server.
            callback_port: _,
            callback_url: _,
            registration,
            client_metadata_url,
            issuer,
            grant,
            private_key_file,
            private_key_env,
            // How something is proved, and over which ways, is not who proves it.
            signing_algorithm: _,
            dpop: _,
            allow_private_network: _,
            assertion_env,
            assertion_file,
            assertion_command,
            idp_issuer,
            idp_token_endpoint,
            idp_client_id,
            idp_client_secret_env,
        } = oauth;
        let registration =
            (*registration != Registration::default()).then(|| registration.as_str());
        let grant = (*grant != Grant::default()).then(|| grant.as_str());
        for (name, text) in [
            ("registration", registration),
            ("client_metadata_url", client_metadata_url.as_deref()),
            ("issuer", issuer.as_deref()),
            ("grant", grant),
            ("private_key_env", private_key_env.as_deref()),
            ("assertion_env", assertion_env.as_deref()),
            ("assertion_command", assertion_command.as_deref()),
            ("idp_issuer", idp_issuer.as_deref()),
            ("idp_token_endpoint", idp_token_endpoint.as_deref()),
            ("idp_client_id", idp_client_id.as_deref()),
            ("idp_client_secret_env", idp_client_secret_env.as_deref()),
        ] {
            self.named(name, text.map(str::as_bytes));
        }
        for (name, path) in [
            ("private_key_file", private_key_file),
            ("assertion_file", assertion_file),
        ] {
            self.named(name, path.as_deref().map(path_bytes));
        }
    }

    /// A field that is there only if it was given.
    fn named(&mut self, name: &str, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.text(name);
            self.bytes(value);
        }
    }
}

/// Not by what the standard library has inside, which may differ from version to version.
#[cfg(unix)]
fn path_bytes(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt as _;
    path.as_os_str().as_bytes()
}

/// Elsewhere nothing better is to be had without a copy, and text is the same bytes anyway.
#[cfg(not(unix))]
fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
