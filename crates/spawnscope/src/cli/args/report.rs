//! The arguments of `report` and `advise`.

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum, ValueHint};

use super::{RecordingArgument, WindowArguments};
use crate::analyze::advice::AdviceList;

pub(super) const REPORT_EXAMPLES: &str = "\
Examples:
  spawnscope report                 # reads spawnscope.db
  spawnscope report --full          # all sections
  spawnscope report --by parent ci.db  # which programs launch others
  spawnscope report --by line       # which script lines request launches
  ssh build cat ci.db | spawnscope report -  # from standard input
  spawnscope report --by args       # same program, same arguments
  spawnscope report --by subcommand  # git log, git show: a row each
  spawnscope report --by label:target  # launches by build target
  spawnscope report --by label:test  # what each test launches
  spawnscope report --by command --top 0  # every command
  spawnscope report --from 12.5 --to 20  # only these seconds
  spawnscope report --json | jq '.commands[0]'";

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    #[command(flatten)]
    pub recording: RecordingArgument,
    /// Print all sections, not only what fits on one screen; --top 0 also prints all rows
    #[arg(long, conflicts_with_all = ["json"])]
    pub full: bool,
    /// Print only the table of launches, grouped by BY; with --full or --json, print the whole report with this table
    #[arg(long, value_enum)]
    pub by: Option<Grouping>,
    /// Number of table rows to print, most expensive first; 0 prints all [default: 15]. If --top is used
    /// without --full, --by or --json, only the table of commands is printed
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, allow_negative_numbers = true)]
    pub top: Option<usize>,
    /// Print JSON (schema_version 1)
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub window: WindowArguments,
}

/// What the rows of the table are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Grouping {
    /// A launched program
    Command,
    /// A launched program with its arguments
    Args,
    /// A launched program with its subcommand, such as `git log` or `python3 -m pip`
    Subcommand,
    /// The launching program
    Parent,
    /// The script line that requested the launch
    Line,
    /// The function that requested the launch
    Caller,
    /// The file that a compiler, linker or archiver writes: with make, usually the target; with ninja, the output of the build edge
    #[value(name = "label:target")]
    Target,
    /// The crate that cargo builds or tests, or whose build script it runs
    #[value(name = "label:crate")]
    Crate,
    /// The directory that make or ninja works in
    #[value(name = "label:directory")]
    Directory,
    /// The cargo package, or the npm package and script
    #[value(name = "label:package")]
    Package,
    /// The test that pytest or cargo-nextest runs
    #[value(name = "label:test")]
    Test,
    /// The CMake target
    #[value(name = "label:cmake")]
    Cmake,
}

pub(super) const ADVISE_EXAMPLES: &str = "\
Examples:
  spawnscope advise                       # what to change in spawnscope.db
  spawnscope advise --all ci.db           # also what is not worth fixing
  spawnscope advise --rule builtin        # what one rule found
  spawnscope advise --episode 2 editor.db  # one refresh of an editor";

/// Arguments of `advise`.
#[derive(Debug, Args)]
pub struct AdviseArguments {
    #[command(flatten)]
    pub recording: RecordingArgument,
    /// Also print findings that are not worth fixing or are too uncertain
    #[arg(long)]
    pub all: bool,
    /// Print only what this rule found, worth fixing or not
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(AdviceList::rules()), hide_possible_values = true)]
    pub rule: Option<String>,
    /// Print JSON (schema_version 1)
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub window: WindowArguments,
}
