//! Command lines that only ask a question about the machine, an installation or a repository. The
//! same command line almost always gives the same answer.

use super::subcommands::subcommand_of;
use crate::model::launch::{Exec, base_name};

/// Programs that only answer questions, whatever their arguments.
const QUERY_PROGRAMS: [&[u8]; 22] = [
    b"arch",
    b"dpkg-architecture",
    b"getconf",
    b"getent",
    b"hostname",
    b"id",
    b"ldconfig",
    b"locale",
    b"logname",
    b"lsb_release",
    b"lscpu",
    b"nproc",
    b"pkg-config",
    b"pkgconf",
    b"readlink",
    b"realpath",
    b"systemd-detect-virt",
    b"tput",
    b"tty",
    b"uname",
    b"which",
    b"whoami",
];
/// Options that make any program print something about itself.
const ABOUT_ITSELF: [&[u8]; 9] = [
    b"--version",
    b"-V",
    b"-v",
    b"-version",
    b"--help",
    b"-vV",
    b"-dumpmachine",
    b"-dumpversion",
    b"--print-architecture",
];
/// Subcommands that only answer questions.
const QUERY_SUBCOMMANDS: [(&[u8], &[&[u8]]); 12] = [
    (b"brew", &[b"--prefix", b"--cellar", b"--repository"]),
    (b"cargo", &[b"locate-project", b"metadata", b"pkgid"]),
    (b"docker", &[b"context", b"info", b"version"]),
    (b"gcloud", &[b"config", b"info"]),
    (b"git", &[b"config", b"describe", b"ls-remote", b"remote", b"rev-parse", b"symbolic-ref", b"var", b"version"]),
    (b"go", &[b"env", b"list", b"version"]),
    (b"kubectl", &[b"config", b"version"]),
    (b"npm", &[b"bin", b"config", b"prefix", b"root"]),
    (b"podman", &[b"info", b"version"]),
    (b"rustup", &[b"show", b"which"]),
    (b"timedatectl", &[b"show"]),
    (b"yarn", &[b"bin", b"dir", b"global"]),
];
/// Programs whose output may change although their arguments do not: they read their input, the
/// time, or files that change.
const PROGRAMS_WITH_CHANGING_OUTPUT: [&[u8]; 66] = [
    b"[",
    b"awk",
    b"base64",
    b"basename",
    b"cat",
    b"cmp",
    b"column",
    b"comm",
    b"cp",
    b"curl",
    b"cut",
    b"date",
    b"dd",
    b"df",
    b"diff",
    b"du",
    b"echo",
    b"env",
    b"expr",
    b"false",
    b"find",
    b"free",
    b"gawk",
    b"grep",
    b"head",
    b"hexdump",
    b"jq",
    b"kill",
    b"ls",
    b"lsof",
    b"make",
    b"mawk",
    b"mktemp",
    b"mv",
    b"nc",
    b"nice",
    b"od",
    b"openssl",
    b"paste",
    b"pgrep",
    b"pidof",
    b"printf",
    b"ps",
    b"rev",
    b"rm",
    b"sed",
    b"shuf",
    b"sleep",
    b"sort",
    b"ss",
    b"ssh",
    b"stat",
    b"sudo",
    b"tail",
    b"tee",
    b"test",
    b"timeout",
    b"touch",
    b"tr",
    b"true",
    b"uniq",
    b"uuidgen",
    b"wc",
    b"wget",
    b"xargs",
    b"xxd",
];

/// Whether the answer to a repeated command line is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    /// It is the same: the program only answers questions about things that seldom change.
    Same,
    /// It may be the same: it is unknown whether the program's answer depends on more than the
    /// arguments.
    PerhapsSame,
}

/// Returns whether the answer to the same command line is the same. `None` if it may change, or if
/// the program has another purpose than its answer.
pub(crate) fn answer_of(exec: &Exec<'_>) -> Option<Answer> {
    let program = base_name(exec.path());
    let mut arguments = exec.arguments().skip(1);
    let subcommands = QUERY_SUBCOMMANDS.iter().find(|(name, _)| *name == program);
    let is_same = QUERY_PROGRAMS.contains(&program)
        || program.ends_with(b"-config")
        || subcommand_of(exec).is_some_and(|subcommand| subcommands.is_some_and(|(_, all)| all.contains(&subcommand)))
        || is_about_itself(exec)
        || arguments.any(|argument| argument.starts_with(b"-print-") || argument == b"--print");
    if is_same {
        return Some(Answer::Same);
    }
    // Any other subcommand changes something, or reads something that changes.
    let may_change = PROGRAMS_WITH_CHANGING_OUTPUT.contains(&program) || subcommand_of(exec).is_some();
    (!may_change).then_some(Answer::PerhapsSame)
}

/// Whether the only argument asks a program about itself.
fn is_about_itself(exec: &Exec<'_>) -> bool {
    let mut arguments = exec.arguments().skip(1);
    let argument = arguments.next().filter(|_| arguments.next().is_none());
    argument.is_some_and(|argument| ABOUT_ITSELF.contains(&argument))
}
