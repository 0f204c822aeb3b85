//! Files for the system around the program: shell completions and manual pages.

use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::error::{CliError, Code};
use crate::printer::Printer;

/// Prints the completion script for a shell.
pub(crate) fn completions(shell: Shell, printer: &Printer) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "cocode", &mut script);
    printer.out(script)
}

/// Prints the manual page, or writes those of all commands to a directory.
pub(crate) fn manual(directory: Option<&Path>, printer: &Printer) -> Result<(), CliError> {
    let Some(directory) = directory else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
        rendered.map_err(|error| {
            CliError::new(Code::SetupFailed, "cannot write the manual page").because(&error)
        })?;
        return printer.out(page);
    };
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
        .map_err(|error| CliError::file("write the manual pages to", directory, &error))
}
