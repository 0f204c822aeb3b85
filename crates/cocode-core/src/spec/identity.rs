//! When two specifications mean the same server, and when a connection made for one still serves
//! for the other. Everything is taken apart here by name, so that whoever adds a field decides.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::{
    OAuth, Program, Reach, Remote, RemoteTransport, Sandbox, ServerSpec, Template, TemplatePart,
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
            tools: _,
            protocol,
            isolation: _,
            always_load: _,
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
            tools: _,
            protocol,
            isolation,
            always_load: _,
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
        let OAuth {
            client_id,
            client_secret_env,
            // Where the answer to signing in arrives says nothing about the server.
            callback_port: _,
            scopes,
            resource,
        } = oauth;
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
        for text in [bearer_token_env_var, headers_helper, client_id] {
            self.optional(text.as_deref());
        }
        self.optional(client_secret_env.as_deref());
        self.texts(scopes.iter().map(String::as_str));
        self.optional(resource.as_deref());
        self.path(base.as_ref());
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
