//! The arguments of `hold`.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::{IdentityArguments, parse_seconds};

pub(super) const USAGE: &str = "spawnscope hold [OPTIONS] -- <CMD>...";

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope hold -- ./server --port 8080
  spawnscope hold --match '*/cc1 *slow.c*' -- make
  spawnscope hold --match python3 --nth 3 -- ./build.sh
  spawnscope hold --run 'perf record -g -p {pid}' -- ./server
  spawnscope hold --run 'strace -f -o log -p {pid}' --match git -- make

The command keeps its standard input; spawnscope reads Enter from the terminal.
Without a terminal, continue the process with `kill -CONT PID`. Ctrl-C reaches
the command and everything it launched, as usual; the held process is continued
so that it receives the signal.

With --run, the process is continued once a tracer has attached to it, or once
the --run command has opened perf events and sleeps. If neither happens
within 10 s, it is continued anyway.

No privilege is needed, but until the process is held, set-user-id programs run
without their privilege, unless spawnscope runs as root. A parent that looks for
stopped children, such as a shell with job control, sees one. Under sudo, the
command and the --run command run as the user who called sudo. A sudoers entry
for spawnscope still amounts to full root access (see SECURITY.md).

Exit status: that of the command, as with `record`.";

/// Arguments of `hold`.
#[derive(Debug, Args)]
pub struct HoldArguments {
    /// Hold the launch whose program's base name, or whose arguments joined by spaces, match GLOB
    #[arg(long = "match", value_name = "GLOB", value_hint = ValueHint::Other)]
    pub pattern: Option<String>,
    /// Hold the N-th matching launch, counted from 1
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, default_value_t = 1, requires = "pattern", value_parser = clap::value_parser!(u32).range(1..))]
    pub nth: u32,
    /// Run CMD in a shell to attach, with `{pid}` replaced by the pid, instead of waiting for Enter. It runs as the user of the command
    #[arg(long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    pub run: Option<OsString>,
    /// When the process has ended, wait S seconds before sending SIGINT to the --run command, and S more before SIGTERM
    #[arg(long, value_name = "S", value_hint = ValueHint::Other, default_value = "5", requires = "run", value_parser = parse_seconds)]
    pub grace: Duration,
    #[command(flatten)]
    pub identity: IdentityArguments,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}
