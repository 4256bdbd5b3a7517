//! What launches can be grouped by: one table for the values of `--by`, the names in JSON, and the
//! headings of tables.

use crate::analyze::explain::report::GroupBy;
use crate::analyze::sites::build_labels::BuildLabel;

pub struct Grouping {
    pub by: GroupBy,
    /// The value of `--by`, which is also the name in JSON.
    pub name: &'static str,
    /// What `--help` says about the rows.
    pub about: &'static str,
    /// The end of the heading `Launches by ...`.
    pub(super) heading: &'static str,
    /// The title of the column with the names of the rows.
    pub(super) column: &'static str,
}

pub const GROUPINGS: [Grouping; 12] = [
    grouping(GroupBy::Command, "command", "A launched program", ["command"; 2]),
    grouping(GroupBy::Arguments, "args", "A launched program with its arguments", ["arguments"; 2]),
    grouping(
        GroupBy::Subcommand,
        "subcommand",
        "A launched program with its subcommand, such as `git log` or `python3 -m pip`",
        ["subcommand"; 2],
    ),
    grouping(GroupBy::Parent, "parent", "The launching program", ["parent program", "parent"]),
    grouping(GroupBy::Line, "line", "The script line that requested the launch", ["script line"; 2]),
    grouping(GroupBy::Caller, "caller", "The function that requested the launch", ["function"; 2]),
    grouping(
        GroupBy::Label(BuildLabel::Target),
        "label:target",
        "The file that a compiler, linker or archiver writes: with make, usually the target; with ninja, the output of the build edge",
        ["target"; 2],
    ),
    grouping(
        GroupBy::Label(BuildLabel::Crate),
        "label:crate",
        "The crate that cargo builds or tests, or whose build script it runs",
        ["crate"; 2],
    ),
    grouping(
        GroupBy::Label(BuildLabel::Directory),
        "label:directory",
        "The directory that make or ninja works in",
        ["directory of make or ninja", "directory"],
    ),
    grouping(
        GroupBy::Label(BuildLabel::Package),
        "label:package",
        "The cargo package, or the npm package and script",
        ["package"; 2],
    ),
    grouping(GroupBy::Label(BuildLabel::Test), "label:test", "The test that pytest or cargo-nextest runs", ["test"; 2]),
    grouping(GroupBy::Label(BuildLabel::Cmake), "label:cmake", "The CMake target", ["CMake target"; 2]),
];

const fn grouping(
    by: GroupBy,
    name: &'static str,
    about: &'static str,
    [heading, column]: [&'static str; 2],
) -> Grouping {
    Grouping { by, name, about, heading, column }
}

pub(super) fn grouping_of(by: GroupBy) -> &'static Grouping {
    GROUPINGS.iter().find(|grouping| grouping.by == by).unwrap_or(&GROUPINGS[0])
}
