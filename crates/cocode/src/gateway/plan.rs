//! What this gateway is to be: the command line, the chosen profile, and the settings, in this order.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use cocode_config::{Config, GatewayProfile, GatewaySettings, Metrics, Prefix, Setting};
use cocode_core::{Reach, Sandbox, ServerSpec, nearest};
use cocode_process::confinement_support;
use cocode_wire::serve::{HttpServerOptions, tls_from_pem};
use url::Url;

use super::{builtin, listen};
use crate::access::Access;
use crate::args::gateway::{AccessArgs, GatewayArgs};
use crate::error::{CliError, Code};
use crate::serving::Selection;
use crate::text::either;
use crate::tool_search::ToolSearch;
use crate::workspace::{Workspace, with_problems};

/// Everything that is decided before the gateway listens.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) http: HttpServerOptions,
    /// Where it is looked after, if not where clients find it.
    pub(crate) office: Option<SocketAddr>,
    /// Where browsers find that, if a proxy is before it.
    pub(crate) office_url: Option<Url>,
    /// Who may read the metrics there.
    pub(crate) metrics: Metrics,
    pub(crate) selection: Selection,
    pub(crate) prefix: cocode_gateway::Prefix,
    pub(crate) search: ToolSearch,
    /// Whether clients are told apart, so that they are not all the owner of the gateway.
    pub(crate) has_principals: bool,
    /// The files with certificate and key.
    pub(crate) tls_files: Vec<PathBuf>,
    /// Whether a token is created at this start, because commands could be run and no authentication is configured.
    pub(crate) creates_token: bool,
}

impl Plan {
    pub(crate) fn new(
        args: &GatewayArgs,
        access: &Access,
        workspace: &Workspace,
    ) -> Result<Self, CliError> {
        let config = workspace.config()?;
        let settings = &config.settings.gateway;
        let profile = args.profile.as_deref();
        let profile = profile.map(|name| profile_of(name, config)).transpose()?;
        let mut http = HttpServerOptions::new(address(args, profile, access, config)?);
        let mut tls_files = Vec::new();
        if let Some((certificate, key)) = certificate(&args.access, config, workspace)? {
            let tls = tls_from_pem(&certificate, &key).map_err(|error| {
                CliError::new(Code::FileError, "the certificate cannot be used").because(&error)
            })?;
            http.tls = Some(tls);
            tls_files = vec![certificate, key];
        }
        // Both count: neither takes away what the other lets in.
        let both = |given: &[String], written: &Setting<Vec<String>>| -> Vec<String> {
            given.iter().chain(&written.value).cloned().collect()
        };
        http.allowed_hosts = both(&args.access.allow_host, &settings.allow_hosts);
        http.allowed_origins = both(&args.access.allow_origin, &settings.allow_origins);
        listen::check_names(&http, access.is_asked())
            .map_err(|error| names_written_in(settings, error))?;
        if let Some(most) = &settings.max_sessions {
            http.limits.max_sessions = usize::try_from(most.value).unwrap_or(usize::MAX);
        }
        if let Some(idle) = &settings.session_idle {
            http.limits.session_idle = idle.value;
        }
        let prefix = args.prefix.map(Prefix::from);
        let prefix = prefix.or_else(|| profile?.prefix);
        let variables = &workspace.environment.variables;
        let search = ToolSearch::new(
            args.search,
            profile,
            &config.settings.tool_search,
            variables,
        )?;
        Ok(Self {
            office: office(&http, access, config)?,
            office_url: office_url(config)?,
            metrics: settings.metrics.value,
            http,
            selection: selection(args, profile, config)?,
            prefix: of_gateway(prefix.unwrap_or(settings.prefix.value)),
            search,
            tls_files,
            creates_token: false,
            has_principals: access.is_asked() || !settings.principals.is_empty(),
        })
    }

    /// A server in the sandbox of `[gateway]`, unless its entry says something about that.
    pub(crate) fn confined(&self, mut spec: ServerSpec, config: &Config) -> ServerSpec {
        let entry = config.servers.get(spec.name.as_str());
        let own = entry.and_then(|server| server.winner.found.entry.sandbox.as_ref());
        if own.is_none() && matches!(spec.reach, Reach::Program(_)) {
            spec.sandbox = self.server_sandbox(config);
        }
        spec
    }

    fn server_sandbox(&self, config: &Config) -> Sandbox {
        match &config.settings.gateway.server_sandbox {
            Some(set) => set.value,
            None if self.has_principals && confinement_support().is_sufficient() => {
                Sandbox::WorkspaceWrite
            }
            None => Sandbox::Off,
        }
    }

    /// Tells that servers get a sandbox that their entries do not ask for.
    pub(crate) fn sandbox_note(&self, config: &Config) -> Option<String> {
        let is_default = config.settings.gateway.server_sandbox.is_none();
        let mut entries = (config.servers.values()).map(|server| &server.winner.found.entry);
        let is_applied = is_default
            && self.server_sandbox(config) != Sandbox::Off
            && entries.any(|entry| entry.command.is_some() && entry.sandbox.is_none());
        is_applied.then(|| {
            "because clients need a token, programs run in the sandbox `workspace-write` and cannot write in your home; \
             `sandbox = \"off\"` in the entry of a server runs it without (docs/sandbox.md)"
                .to_owned()
        })
    }

    /// Why the sandbox that is the default for servers cannot be had.
    pub(crate) fn sandbox_warning(&self, config: &Config) -> Option<String> {
        let support = confinement_support();
        let is_wanted = self.has_principals && config.settings.gateway.server_sandbox.is_none();
        (is_wanted && !support.is_sufficient()).then(|| {
            format!(
                "servers run without a sandbox, since this system has none ({support}); \
                 `server_sandbox = \"off\"` in [gateway] accepts that"
            )
        })
    }

    /// What to say of the addresses before they are listened at.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let http = &self.http;
        let addresses = std::iter::once(http.listen).chain(self.office);
        let warnings = addresses
            .map(|address| listen::warnings(address, http.tls.is_some(), &http.allowed_hosts));
        warnings.flatten().collect()
    }

    /// What the server is told by whom those come who look after the gateway: also pages that a proxy
    /// has passed on, which come from its address.
    pub(crate) fn office_http(&self) -> HttpServerOptions {
        let mut http = self.http.clone();
        if let Some(url) = &self.office_url {
            http.allowed_hosts.extend(url.host_str().map(str::to_owned));
            http.allowed_origins
                .push(url.origin().ascii_serialization());
        }
        http
    }

    /// The scheme that clients use.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.http.tls.is_some() {
            "https"
        } else {
            "http"
        }
    }
}

/// The same, as the gateway has it.
pub(crate) fn of_gateway(prefix: Prefix) -> cocode_gateway::Prefix {
    match prefix {
        Prefix::Always => cocode_gateway::Prefix::Always,
        Prefix::OnConflict => cocode_gateway::Prefix::OnConflict,
        Prefix::Never => cocode_gateway::Prefix::Never,
    }
}

/// The servers that are wanted: those that the command line names, else those of the profile.
fn selection(
    args: &GatewayArgs,
    profile: Option<&GatewayProfile>,
    config: &Config,
) -> Result<Selection, CliError> {
    let given = (!args.servers.is_empty()).then_some(&args.servers);
    let names = given.or_else(|| profile?.servers.as_ref());
    let has_built_in = args.tools.root.is_some() || config.servers.is_empty();
    let is_configured = |name: &&String| !has_built_in || *name != builtin::NAME;
    let servers = names.map(|names| names.iter().filter(is_configured).cloned().collect());
    let selection = Selection { servers };
    selection.check(config)?;
    Ok(selection)
}

/// The profile of this name.
pub(crate) fn profile_of<'a>(
    name: &str,
    config: &'a Config,
) -> Result<&'a GatewayProfile, CliError> {
    let profiles = &config.settings.gateway.profiles;
    profiles.get(name).ok_or_else(|| {
        let message = format!("there is no profile `{name}`");
        let error = CliError::new(Code::InvalidUsage, message);
        let names: Vec<&str> = profiles.keys().map(String::as_str).collect();
        let error = if names.is_empty() {
            error
        } else {
            error.hint(format!("profiles: {}", names.join(", ")))
        };
        let near: Vec<String> = nearest(name, profiles.keys().map(String::as_str))
            .into_iter()
            .map(|name| format!("`{name}`"))
            .collect();
        if near.is_empty() {
            return error.hint(format!(
                "profiles are tables [gateway.profiles.{name}] of config.toml"
            ));
        }
        error.hint(format!("did you mean {}?", either(&near)))
    })
}

fn address(
    args: &GatewayArgs,
    profile: Option<&GatewayProfile>,
    access: &Access,
    config: &Config,
) -> Result<SocketAddr, CliError> {
    let address_of = |text: &str| listen::address(text, access.is_asked());
    if let Some(text) = &args.listen {
        return address_of(text);
    }
    if let Some(profile) = profile
        && let Some(text) = &profile.listen
    {
        return address_of(text).map_err(|error| error.hint(written_in(&profile.from)));
    }
    // Who wrote where to listen is not listened to elsewhere.
    let of_profile = args.profile.as_ref();
    let of_profile = of_profile.map(|name| format!("gateway.profiles.{name}.listen"));
    let is_meant = |key: &str| key == "gateway.listen" || of_profile.as_deref() == Some(key);
    let unusable = config.problems.iter().find(|problem| {
        let key = problem.key.as_deref();
        problem.is_error() && key.is_some_and(is_meant)
    });
    if let Some(problem) = unusable {
        let message = "the configuration says where to listen, and that is nothing to listen at";
        let error = CliError::new(Code::InvalidConfig, message);
        return Err(with_problems(error, &[problem]).hint("`--listen ADDR` counts more"));
    }
    match &config.settings.gateway.listen {
        None => Ok(listen::DEFAULT),
        Some(Setting { value, from }) => address_of(value).map_err(|error| match from {
            Some(from) => error.hint(written_in(from)),
            None => error,
        }),
    }
}

/// Where the gateway is looked after, if that is another address: what others can reach is for clients
/// alone, unless somebody says so.
fn office(
    http: &HttpServerOptions,
    access: &Access,
    config: &Config,
) -> Result<Option<SocketAddr>, CliError> {
    if let Some(Setting { value, from }) = &config.settings.gateway.admin_listen {
        let address = listen::address(value, access.is_asked());
        let address = address.map_err(|error| match from {
            Some(from) => error.hint(written_in(from)),
            None => error,
        })?;
        return Ok((address != http.listen).then_some(address));
    }
    if !listen::is_reached_by_others(http.listen) {
        return Ok(None);
    }
    let port = http.listen.port();
    let port = if port == 0 { 0 } else { port.wrapping_add(1) };
    Ok(Some(SocketAddr::new(listen::DEFAULT.ip(), port)))
}

/// Where browsers find it behind a proxy.
fn office_url(config: &Config) -> Result<Option<Url>, CliError> {
    let Some(Setting { value, from }) = &config.settings.gateway.admin_url else {
        return Ok(None);
    };
    let is_bare =
        |url: &Url| url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    match Url::parse(value) {
        Ok(url) if is_bare(&url) => Ok(Some(url)),
        Ok(_) | Err(_) => {
            let message =
                "`gateway.admin_url` is to be a scheme and a host, as in https://gate.example.com";
            let error = CliError::new(Code::InvalidConfig, message)
                .hint("the dashboard has to be at the root of that host, without a path");
            Err(match from {
                Some(from) => error.hint(written_in(from)),
                None => error,
            })
        }
    }
}

/// Where the names are written that a gateway is refused for, if not on the command line.
fn names_written_in(settings: &GatewaySettings, error: CliError) -> CliError {
    let lists = [
        ("allow_hosts", &settings.allow_hosts),
        ("allow_origins", &settings.allow_origins),
    ];
    let written = lists.into_iter().filter_map(|(key, setting)| {
        let from = setting.from.as_ref()?;
        let is_meant = !setting.value.is_empty();
        is_meant.then(|| format!("`{key}` is written in {from}"))
    });
    written.fold(error, CliError::hint)
}

fn written_in(from: &cocode_config::SettingOrigin) -> String {
    format!("this address is written in {from}")
}

/// The files with certificate and key.
fn certificate(
    args: &AccessArgs,
    config: &Config,
    workspace: &Workspace,
) -> Result<Option<(PathBuf, PathBuf)>, CliError> {
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        let directory = workspace.places.directory.as_deref();
        let place = |file: &Path| directory.map_or_else(|| file.to_owned(), |at| at.join(file));
        return Ok(Some((place(certificate), place(key))));
    }
    let settings = &config.settings.gateway;
    match (&settings.tls_certificate, &settings.tls_key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some((beside(certificate), beside(key)))),
        (Some(_), None) | (None, Some(_)) => {
            let message = "`gateway.tls_certificate` and `gateway.tls_key` belong together";
            Err(CliError::new(Code::InvalidConfig, message)
                .hint("`cocode config show` says where settings are written"))
        }
    }
}

/// A file that is named by a file: relative paths mean something only there.
fn beside(setting: &Setting<String>) -> PathBuf {
    let file = Path::new(&setting.value);
    let from = setting.from.as_ref();
    let directory = from.and_then(|from| from.origin.file.parent());
    directory.map_or_else(|| file.to_owned(), |directory| directory.join(file))
}
