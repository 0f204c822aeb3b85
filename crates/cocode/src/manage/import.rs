//! Not built yet.

pub(crate) fn run(
    _args: &crate::args::manage::ImportArgs,
    _workspace: &crate::workspace::Workspace,
) -> Result<crate::error::Exit, crate::error::CliError> {
    Err(crate::error::CliError::new(
        crate::error::Code::SetupFailed,
        "not built yet",
    ))
}
