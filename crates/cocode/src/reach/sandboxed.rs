//! The sandbox of a stdio server: whether it can be had, and what it gives.

use std::sync::Arc;

use cocode_core::{Reach, Sandbox, ServerSpec};
use cocode_process::{ConfineError, ProcessSpec, Support, TemporaryDirectory};

use super::Configured;
use crate::error::{CliError, Code};

/// A server that wants a sandbox is not started without one, and this system may have none.
pub(crate) fn refused_sandbox(spec: &ServerSpec, support: Support) -> Option<CliError> {
    if spec.sandbox == Sandbox::Off || !matches!(spec.reach, Reach::Program(_)) {
        return None;
    }
    let refused = support.check().err()?;
    let message = format!(
        "server `{}` is to run in a sandbox, which this system cannot do",
        spec.name
    );
    Some(
        CliError::new(Code::InvalidConfig, message)
            .because(&refused)
            .hint("take the key `sandbox` out to run it without one"),
    )
}

/// Confines a server as its entry says. Our own directories stay out of reach. It gets a directory for temporary
/// files, unless its entry sets one.
pub(super) fn confine(
    process: &mut ProcessSpec,
    spec: &ServerSpec,
    by: &Configured,
    sets_temporary: bool,
) -> Result<(), ConfineError> {
    cocode_client::confine(process, spec.sandbox)?;
    let Some(confinement) = process.confinement.take() else {
        return Ok(());
    };
    let Configured { state, user, .. } = by;
    let mut confinement = confinement.with_hidden(state).with_protected(user);
    if !sets_temporary {
        let directory = TemporaryDirectory::create_in(&state.join("tmp").join("servers"))?;
        process.env.retain(|(name, _)| name != "TMPDIR");
        process.env.push(("TMPDIR".into(), directory.path().into()));
        confinement = confinement.with_temporary(Arc::new(directory));
    }
    process.confinement = Some(confinement);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cocode_core::Program;

    use super::*;

    fn spec(sandbox: Sandbox) -> ServerSpec {
        let program = Program {
            command: "true".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            env_vars: Vec::new(),
            cwd: None,
            base: None,
            beside: None,
        };
        let mut spec = ServerSpec::new("s".parse().unwrap(), Reach::Program(program));
        spec.sandbox = sandbox;
        spec
    }

    #[test]
    fn a_sandbox_that_cannot_be_had_is_a_matter_of_the_entry() {
        for sandbox in [Sandbox::ReadOnly, Sandbox::WorkspaceWrite] {
            let error = refused_sandbox(&spec(sandbox), Support::Missing).unwrap();
            assert_eq!(error.code, Code::InvalidConfig.as_str());
            assert!(error.message.contains("server `s`"), "{error:?}");
            let why = error.causes.concat();
            assert!(why.contains("no Landlock") && why.contains("Nothing was started"));
            let can = Support::Landlock { abi: 7 };
            assert!(refused_sandbox(&spec(sandbox), can).is_none());
        }
        assert!(refused_sandbox(&spec(Sandbox::Off), Support::Missing).is_none());
    }
}
