//! Not built yet.

pub(crate) fn run(
    _servers: &[(&str, &cocode_config::Server)],
    _timeout: Option<std::time::Duration>,
    _workspace: &crate::workspace::Workspace,
) -> Result<crate::error::Exit, crate::error::CliError> {
    Err(crate::error::CliError::new(
        crate::error::Code::SetupFailed,
        "not built yet",
    ))
}
