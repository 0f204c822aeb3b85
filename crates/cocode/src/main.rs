//! The binary and composition root: arguments, wiring, output, exit codes.

fn main() {}
