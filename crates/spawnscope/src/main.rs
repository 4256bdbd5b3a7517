//! The `spawnscope` command: calls the verb in `cli` and turns its outcome into an exit status.

use std::process::ExitCode;

fn main() -> ExitCode {
    spawnscope::cli::main()
}
