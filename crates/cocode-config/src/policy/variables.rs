//! Variables that change which program runs, or what a well-known one does, when they are set.
//!
//! No list can be complete: a program may read anything. These are the variables of loaders, shells,
//! language runtimes and package runners, which turn an allowed command into any other.

use cocode_core::Wildcard;

/// Compared in upper case.
const CHANGING: &[&str] = &[
    // Finding programs and the files they trust.
    "PATH",
    "PATHEXT",
    "COMSPEC",
    "HOME",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "XDG_*",
    "SHELL",
    // The loader and the C library.
    "LD_*",
    "DYLD_*",
    "LIBPATH",
    "SHLIB_PATH",
    "GCONV_PATH",
    "LOCPATH",
    "NLSPATH",
    "GLIBC_TUNABLES",
    "MALLOC_*",
    "OPENSSL_*",
    "SSL_CERT_*",
    "HOSTALIASES",
    "RES_OPTIONS",
    // Shells, and what programs start by themselves.
    "BASH_ENV",
    "BASH_FUNC_*",
    "BASHOPTS",
    "ENV",
    "SHELLOPTS",
    "PROMPT_COMMAND",
    "PS4",
    "IFS",
    "CDPATH",
    "ZDOTDIR",
    "FPATH",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "BROWSER",
    "LESSOPEN",
    "LESSCLOSE",
    "SUDO_ASKPASS",
    "SSH_ASKPASS*",
    "GIT_*",
    // JavaScript.
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_*",
    "NODE_EXTRA_CA_CERTS",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "NPM_*",
    "PNPM_*",
    "YARN_*",
    "COREPACK_*",
    "BUN_*",
    "DENO_*",
    "VOLTA_*",
    "NVM_*",
    "FNM_*",
    // Python.
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "PYTHONEXECUTABLE",
    "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX",
    "PYTHONBREAKPOINT",
    "PYTHONINSPECT",
    "PYTHONWARNINGS",
    "PYTHONCASEOK",
    "__PYVENV_LAUNCHER__",
    "VIRTUAL_ENV",
    "UV_*",
    "PIP_*",
    "PIPX_*",
    "PDM_*",
    "POETRY_*",
    "CONDA_*",
    "PYENV_*",
    "REQUESTS_CA_BUNDLE",
    // Java and .NET.
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JAVA_HOME",
    "JAVA_OPTS",
    "CLASSPATH",
    "MAVEN_*",
    "GRADLE_*",
    "JBANG_*",
    "DOTNET_*",
    "CORECLR_*",
    "COR_*",
    "COMPLUS_*",
    "NUGET_*",
    // Others.
    "PERL5LIB",
    "PERL5OPT",
    "PERL5DB",
    "PERLLIB",
    "RUBYOPT",
    "RUBYLIB",
    "GEM_*",
    "BUNDLE_*",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "COMPOSER_*",
    "LUA_*",
    "R_PROFILE*",
    "R_ENVIRON*",
    "R_HOME",
    "R_LIBS*",
    "JULIA_*",
    "ERL_*",
    "ELIXIR_ERL_OPTIONS",
    "GOFLAGS",
    "GOPROXY",
    "GOTOOLCHAIN",
    "GOENV",
    "GONOSUMDB",
    "CARGO*",
    "RUSTC*",
    "RUSTUP_*",
    "NIX_*",
    "MISE_*",
    "ASDF_*",
    "DOCKER_*",
    "CONTAINER_*",
    "PODMAN_*",
];

/// What every program gets from the caller's own environment. See `cocode_process`.
const PASSED_ON: [&str; 3] = ["PATH", "HOME", "SHELL"];

/// Whether a variable can change what is run. A name that cannot be one may mean any.
pub(super) fn changes_program(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let is_name = !name.is_empty() && !name.contains(['=', '\0']);
    !is_name
        || CHANGING
            .iter()
            .any(|pattern| Wildcard::new(*pattern).matches(&upper))
}

/// Whether every program gets the caller's own value of the variable anyway.
pub(super) fn is_passed_on(name: &str) -> bool {
    PASSED_ON.contains(&name)
}
