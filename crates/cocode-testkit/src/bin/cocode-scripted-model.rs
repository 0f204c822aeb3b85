//! A provider of models that says what its script says.

use std::process::ExitCode;

fn main() -> ExitCode {
    let code = cocode_testkit::scripted_model_main(std::env::args().skip(1));
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
