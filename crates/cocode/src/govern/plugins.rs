//! Not built yet.

pub(crate) fn run(
    _verb: &crate::args::govern::PluginVerb,
    _workspace: &crate::workspace::Workspace,
) -> Result<crate::error::Exit, crate::error::CliError> {
    Err(crate::error::CliError::new(
        crate::error::Code::SetupFailed,
        "not built yet",
    ))
}
