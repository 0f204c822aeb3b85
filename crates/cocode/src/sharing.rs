//! When two who use a server of equal specification may share one connection to it: everything that
//! reaches the server, or decides how it is reached, must be the same for both.
//!
//! Secrets are not looked up for this. Where they are looked up, and by what, is part of the key.

use std::ffi::OsStr;
use std::path::Path;

use cocode_core::{OAuth, Program, Reach, Remote, ServerSpec, Template};
use sha2::{Digest as _, Sha256};

use crate::environment::Variables;
use crate::error::CliError;
use crate::managing;
use crate::stores;
use crate::workspace::Workspace;

/// What a workspace decides about all its servers: proxies and certificates, the stores of secrets
/// and of sign-ins, and how servers are watched.
pub(crate) fn ways(workspace: &Workspace) -> Result<Vec<String>, CliError> {
    let settings = &workspace.config()?.settings;
    let environment = &workspace.environment;
    let document = settings.oauth.client_metadata_url.as_ref();
    Ok(vec![
        format!("{:?}", environment.http),
        stores::identity(workspace)?,
        format!("{:?}", document.map(|setting| &setting.value)),
        format!("{:?}", environment.tool_timeout),
        format!("{:?}", managing::health(&settings.health)),
        format!("{:?}", managing::tool_total_timeout(&settings.health)),
        workspace.places.state.display().to_string(),
    ])
}

/// What makes a connection another, besides the fingerprint of the server: a hash, since some of it
/// is secret.
pub(crate) fn key(
    spec: &ServerSpec,
    variables: &Variables,
    directory: Option<&Path>,
    ways: &[String],
) -> Vec<String> {
    let mut fields = Fields(Sha256::new());
    for way in ways {
        fields.add(way);
    }
    // Not part of the fingerprint, but of how the connection behaves.
    let ServerSpec {
        connect_timeout,
        tool_timeout,
        tool_timeouts,
        tool_total_timeout,
        idle_stop,
        ..
    } = spec;
    let tools = (tool_timeout, tool_timeouts, tool_total_timeout);
    let times = (connect_timeout, tools, idle_stop);
    fields.add(format!("{times:?}"));
    let (own, runs_something) = match &spec.reach {
        Reach::Program(program) => (program.directory(), true),
        Reach::Remote(remote) => (remote.base.as_deref(), runs_commands(remote)),
    };
    for name in named_variables(spec) {
        match variables.get(name.as_ref()) {
            Some(value) => fields.add(value).add("set"),
            None => fields.add("unset"),
        };
    }
    // What is started anywhere gets these variables, and starts in this directory.
    if runs_something {
        for (name, value) in variables.for_servers() {
            fields.add(name).add(value);
        }
        let directory = own.or(directory);
        fields.add(directory.map_or(OsStr::new(""), Path::as_os_str));
    }
    vec![fields.hexadecimal()]
}

/// Whether servers of this entry are others in other directories.
pub(crate) fn is_of_directory(spec: &ServerSpec) -> bool {
    match &spec.reach {
        Reach::Program(program) => program.directory().is_none(),
        Reach::Remote(remote) => remote.base.is_none() && runs_commands(remote),
    }
}

/// A hash of these texts, in hexadecimal.
pub(crate) fn digest<T: AsRef<OsStr>>(texts: impl IntoIterator<Item = T>) -> String {
    let mut fields = Fields(Sha256::new());
    for text in texts {
        fields.add(text);
    }
    fields.hexadecimal()
}

/// The variables that an entry names, besides those that it refers to as `${NAME}`.
pub(crate) fn named_variables(spec: &ServerSpec) -> Vec<&str> {
    match &spec.reach {
        Reach::Program(program) => of_program(program),
        Reach::Remote(remote) => of_remote(remote),
    }
}

/// The variables that a program is given by name.
fn of_program(program: &Program) -> Vec<&str> {
    program.env_vars.iter().map(String::as_str).collect()
}

/// The variables that say who we are at an address.
fn of_remote(remote: &Remote) -> Vec<&str> {
    let OAuth {
        client_secret_env,
        private_key_env,
        assertion_env,
        idp_client_secret_env,
        ..
    } = &remote.oauth;
    let headers = remote.env_headers.values().map(String::as_str);
    let others = [
        &remote.bearer_token_env_var,
        client_secret_env,
        private_key_env,
        assertion_env,
        idp_client_secret_env,
    ];
    let others = others.into_iter().filter_map(Option::as_deref);
    headers.chain(others).collect()
}

/// Whether a command is run to get in at an address.
fn runs_commands(remote: &Remote) -> bool {
    let refers = |template: &Template| template.as_literal().is_none();
    remote.headers_helper.is_some()
        || remote.oauth.assertion_command.is_some()
        || remote.headers.values().any(refers)
}

/// Fields one after the other, each with its length: no two lists of fields have the same bytes.
struct Fields(Sha256);

impl Fields {
    fn add(&mut self, field: impl AsRef<OsStr>) -> &mut Self {
        let bytes = field.as_ref().as_encoded_bytes();
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
        self
    }

    fn hexadecimal(self) -> String {
        let digits = |byte: u8| [byte >> 4, byte & 15];
        let digest = self.0.finalize();
        let digits = digest.iter().copied().flat_map(digits);
        digits
            .filter_map(|digit| char::from_digit(u32::from(digit), 16))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use cocode_core::{Reach, ServerSpec, Template, TemplatePart};

    use super::key;
    use crate::environment::Variables;

    const USUAL: &[(&str, &str)] = &[("PATH", "/bin"), ("HOME", "/house/a"), ("TOKEN", "one")];

    fn variables(all: &[(&str, &str)]) -> Variables {
        let all = all.iter();
        all.map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect()
    }

    /// Whether two in these environments and directories share a server.
    fn share(spec: &ServerSpec, other: &[(&str, &str)], directory: &str) -> bool {
        let one = key(spec, &variables(USUAL), Some(Path::new("/a")), &[]);
        let two = key(spec, &variables(other), Some(Path::new(directory)), &[]);
        one == two
    }

    fn program() -> ServerSpec {
        ServerSpec::program("files".parse().unwrap(), "mcp-files", ["."])
    }

    fn changed(name: &str, value: &str) -> Vec<(&'static str, String)> {
        let usual = USUAL.iter();
        usual
            .map(|(known, old)| (*known, if *known == name { value } else { old }.to_owned()))
            .collect()
    }

    fn shares_with(spec: &ServerSpec, name: &str, value: &str) -> bool {
        let changed = changed(name, value);
        let other: Vec<(&str, &str)> = changed
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        share(spec, &other, "/a")
    }

    #[test]
    fn programs_are_shared_only_from_the_same_place_with_the_same_variables() {
        let spec = program();
        assert!(share(&spec, USUAL, "/a"));
        assert!(!share(&spec, USUAL, "/b"));
        assert!(!shares_with(&spec, "HOME", "/house/b"));
        assert!(!shares_with(&spec, "PATH", "/usr/bin"));
        assert!(shares_with(&spec, "TOKEN", "two"), "it is not passed on");
    }

    #[test]
    fn variables_that_are_passed_on_count() {
        let mut spec = program();
        if let Reach::Program(program) = &mut spec.reach {
            program.env_vars.push("TOKEN".to_owned());
        }
        assert!(!shares_with(&spec, "TOKEN", "two"));
        assert!(!share(&spec, &USUAL[..2], "/a"), "unset is not empty");
    }

    #[test]
    fn a_program_with_a_directory_of_its_own_is_shared_from_anywhere() {
        let mut spec = program();
        if let Reach::Program(program) = &mut spec.reach {
            program.cwd = Some("/srv".into());
        }
        assert!(share(&spec, USUAL, "/b"));
    }

    #[test]
    fn addresses_are_shared_from_anywhere_by_those_who_are_the_same_there() {
        let mut spec = ServerSpec::remote("web".parse().unwrap(), "https://a.example/mcp");
        assert!(share(&spec, USUAL, "/b"));
        assert!(shares_with(&spec, "HOME", "/house/b"));
        let Reach::Remote(remote) = &mut spec.reach else {
            panic!("a remote server");
        };
        remote.bearer_token_env_var = Some("TOKEN".to_owned());
        assert!(!shares_with(&spec, "TOKEN", "two"));
    }

    #[test]
    fn commands_that_print_secrets_make_place_and_variables_count() {
        let mut spec = ServerSpec::remote("web".parse().unwrap(), "https://a.example/mcp");
        let Reach::Remote(remote) = &mut spec.reach else {
            panic!("a remote server");
        };
        let parts = vec![TemplatePart::Command("./token".to_owned())];
        let template = Template { parts };
        remote.headers.insert("X-Token".to_owned(), template);
        assert!(share(&spec, USUAL, "/a"));
        assert!(!share(&spec, USUAL, "/b"));
        assert!(!shares_with(&spec, "HOME", "/house/b"));
    }

    #[test]
    fn timeouts_and_ways_count() {
        let spec = program();
        let patient = ServerSpec {
            tool_timeout: std::time::Duration::from_mins(9),
            ..spec.clone()
        };
        let of = |spec: &ServerSpec, ways: &[&str]| {
            let ways: Vec<String> = ways.iter().map(|way| (*way).to_owned()).collect();
            key(spec, &variables(USUAL), Some(Path::new("/a")), &ways)
        };
        assert_ne!(of(&spec, &[]), of(&patient, &[]));
        assert_ne!(of(&spec, &["proxy a"]), of(&spec, &["proxy b"]));
        assert_ne!(of(&spec, &["ab", "c"]), of(&spec, &["a", "bc"]));
    }
}
