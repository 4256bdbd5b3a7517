//! The `spawnscope` command: hands over to the verbs in `cli` and turns their outcome into an exit status.

use std::process::ExitCode;

fn main() -> ExitCode {
    spawnscope::cli::main()
}
