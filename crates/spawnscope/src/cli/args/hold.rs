//! What can be typed after `hold`.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::{IdentityArguments, seconds};

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope hold -- ./server --port 8080
  spawnscope hold --match '*/cc1 *slow.c*' -- make
  spawnscope hold --match python3 --nth 3 -- ./build.sh
  spawnscope hold --run 'perf record -g -p {pid}' -- ./server
  spawnscope hold --run 'strace -f -o log -p {pid}' --match git -- make

The command's standard input is its own: Enter is read from the terminal.
Without one, continue the process with `kill -CONT PID`. Ctrl-C reaches the
command and all it launched, as ever; the held process is continued for it.

With --run, the process is continued when a tracer has it, or when the command
has performance events open and sleeps; after 10 s without either, it is
continued nevertheless.

No privilege is needed, but until the process is held, the kernel gives
set-user-id programs no privilege, unless spawnscope runs as root. A parent that
looks for stopped children, such as a shell with job control, sees one. Under sudo
the command, and that of --run, run as the user who typed it; a permission for
spawnscope in sudoers is one for everything all the same (SECURITY.md).

Exit status: the command's own, as of record.";

/// Arguments of `hold`.
#[derive(Debug, Args)]
pub struct HoldArguments {
    /// Hold the launch whose program's base name, or whose arguments joined by blanks, match GLOB
    #[arg(long = "match", value_name = "GLOB")]
    pub pattern: Option<String>,
    /// The N-th such launch, counted from 1
    #[arg(long, value_name = "N", default_value_t = 1, requires = "pattern", value_parser = clap::value_parser!(u32).range(1..))]
    pub nth: u32,
    /// Have a command attach, by a shell, with `{pid}` for the process; nobody is asked then. It runs as the same user as the command
    #[arg(long, value_name = "CMD")]
    pub run: Option<OsString>,
    /// Seconds after the process's end, before that command is sent SIGINT, and again before SIGTERM
    #[arg(long, value_name = "S", default_value = "5", requires = "run", value_parser = seconds)]
    pub grace: Duration,
    #[command(flatten)]
    pub identity: IdentityArguments,
    /// The command and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}
