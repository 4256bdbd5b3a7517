//! Who maintains the code that requests launches: the user, a generator (`configure`, `libtool`),
//! or a third party (`node_modules`, `/usr`). Advice about code that the user does not maintain
//! ranks below advice about the user's own code.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::explain::advice::context::RuleContext;
use crate::model::launch::{Exec, base_name, is_version_of};
use crate::sites::callers::CallSite;
use spawnscope_data::event::Language;

/// Who maintains a file of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The user, as far as the path shows.
    User,
    /// A generator such as Autoconf, Automake, Libtool or CMake, whose next run discards edits.
    Generated,
    /// A third party: an installed package or a vendored dependency.
    ThirdParty,
}

/// Code that the user does not maintain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignCode {
    /// The owner of the code, who is never the user.
    pub owner: Owner,
    /// The file that requests most of the launches.
    pub file: Vec<u8>,
}

/// Scripts that Autoconf, Automake and Libtool generate or copy into a project.
const GENERATED_SCRIPTS: [&[u8]; 15] = [
    b"ar-lib",
    b"compile",
    b"config.guess",
    b"config.status",
    b"config.sub",
    b"configure",
    b"depcomp",
    b"install-sh",
    b"libtool",
    b"ltmain.sh",
    b"missing",
    b"mkinstalldirs",
    b"py-compile",
    b"test-driver",
    b"ylwrap",
];
/// Directories of generated code.
const GENERATED_DIRECTORIES: [&[u8]; 2] = [b"CMakeFiles", b"autom4te.cache"];
/// Directories of installed or vendored dependencies.
const THIRD_PARTY_DIRECTORIES: [&[u8]; 8] =
    [b"dist-packages", b"gems", b"node_modules", b"perl5", b"site-packages", b"third_party", b"vendor", b"vendor_perl"];
/// Prefixes of paths of installed packages.
const INSTALLED_PREFIXES: [&[u8]; 6] = [b"/usr/", b"/lib/", b"/bin/", b"/sbin/", b"/nix/store/", b"/gnu/store/"];
/// The directory below `/usr/` in which users keep their own scripts.
const LOCAL_PREFIX: &[u8] = b"/usr/local/";
/// Parts of paths of dependencies that a package manager downloaded.
const DOWNLOADED_PARTS: [&[u8]; 3] = [b"/.cargo/registry/", b"/.rustup/toolchains/", b"/go/pkg/mod/"];
/// Compiled programs that decide for themselves what to launch. No script or makefile of the user
/// requests these launches.
const SELF_DIRECTED: [&[u8]; 18] = [
    b"apt",
    b"apt-get",
    b"c++",
    b"cargo",
    b"cc",
    b"clang",
    b"clang++",
    b"cmake",
    b"collect2",
    b"dpkg",
    b"g++",
    b"gcc",
    b"git",
    b"go",
    b"lto-wrapper",
    b"ninja",
    b"rpm",
    b"rustc",
];
/// Rules whose fix is not in the code that requests the launches, but in the machine, the
/// environment or the launched program.
const FIXED_ELSEWHERE: [&str; 12] = [
    "build-once",
    "loader",
    "loader-search",
    "off-path",
    "path-search",
    "run-queue",
    "scanner",
    "shell-code",
    "shims",
    "slow-machine",
    "teardown",
    "version-manager",
];

impl Owner {
    /// Returns who maintains a file, by its path.
    #[must_use]
    pub fn of(path: &[u8]) -> Owner {
        let mut directories = path.rsplit(|byte| *byte == b'/').skip(1);
        if GENERATED_SCRIPTS.contains(&base_name(path)) {
            return Owner::Generated;
        }
        let kind = directories.find_map(|directory| match directory {
            _ if GENERATED_DIRECTORIES.contains(&directory) => Some(Owner::Generated),
            _ if THIRD_PARTY_DIRECTORIES.contains(&directory) => Some(Owner::ThirdParty),
            _ => None,
        });
        let is_installed =
            INSTALLED_PREFIXES.iter().any(|begin| path.starts_with(begin)) && !path.starts_with(LOCAL_PREFIX);
        let is_downloaded = DOWNLOADED_PARTS.iter().any(|part| path.windows(part.len()).any(|window| window == *part));
        match kind {
            Some(owner) => owner,
            None if is_installed || is_downloaded => Owner::ThirdParty,
            None => Owner::User,
        }
    }
}

/// Returns the code that requests most of the launches of a finding. `None` if the user maintains
/// it, if it is unknown, or if the rule's fix is elsewhere.
pub(super) fn foreign_code(context: &RuleContext<'_, '_>, rule: &str, launches: &[u32]) -> Option<ForeignCode> {
    if FIXED_ELSEWHERE.contains(&rule) {
        return None;
    }
    let mut files: BTreeMap<(Owner, &[u8]), usize> = BTreeMap::new();
    for (owner, file) in launches.iter().filter_map(|launch| code_of(context, *launch)) {
        *files.entry((owner, file)).or_default() += 1;
    }
    files.retain(|(owner, _), _| *owner != Owner::User);
    if files.values().sum::<usize>() * 2 <= launches.len() {
        return None;
    }
    let ((owner, file), _) = files.into_iter().min_by_key(|(_, count)| Reverse(*count))?;
    Some(ForeignCode { owner, file: file.to_vec() })
}

/// Returns the code that requested a launch, with its owner. The code is a script, or a compiled
/// program that decides for itself what to launch. `None` for other compiled programs, because the
/// user controls only their arguments.
fn code_of<'g>(context: &RuleContext<'g, '_>, launch: u32) -> Option<(Owner, &'g [u8])> {
    let call_site = context.callers.call_site_of(launch as usize);
    let script_call_site = call_site.filter(|call_site| call_site.language != Language::Native);
    let launcher = context.forest().launcher(launch as usize);
    let program = launcher.filter(|_| script_call_site.is_none()).filter(is_self_directed);
    if let Some(program) = program {
        return Some((Owner::ThirdParty, program.path()));
    }
    // Code in an `eval` has no file, but belongs to the script.
    let file = script_call_site.and_then(|call_site| call_site.file.as_deref());
    let file = file.or_else(|| launcher.and_then(script_of))?;
    let is_generated = script_call_site.is_some_and(is_generated_makefile);
    Some((if is_generated { Owner::Generated } else { Owner::of(file) }, file))
}

fn is_self_directed(exec: &&Exec<'_>) -> bool {
    let name = exec.program_name();
    SELF_DIRECTED.iter().any(|program| is_version_of(name, program))
}

/// Whether the call site is in a makefile whose text says that it was generated. The path does not
/// show this: Automake's makefiles are called Makefile, too.
fn is_generated_makefile(call_site: &CallSite) -> bool {
    call_site.language == Language::Make && call_site.module.is_some()
}

/// Returns the path of the script that an exec ran.
fn script_of<'e>(exec: &'e Exec<'_>) -> Option<&'e [u8]> {
    exec.interpreter().map(|_| exec.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_shows_who_maintains_a_file() {
        let cases = [
            ("./configure", Owner::Generated),
            ("config.status", Owner::Generated),
            ("/home/me/project/build-aux/ltmain.sh", Owner::Generated),
            ("build/CMakeFiles/run.sh", Owner::Generated),
            ("/home/me/app/node_modules/husky/install.js", Owner::ThirdParty),
            ("/home/me/.venv/lib/python3.11/site-packages/pip/_vendor/x.py", Owner::ThirdParty),
            ("/usr/share/bash-completion/completions/git", Owner::ThirdParty),
            ("/home/me/.cargo/registry/src/index/cc-1.0/src/lib.rs", Owner::ThirdParty),
            ("/usr/local/bin/deploy", Owner::User),
            ("/home/me/vendors/list.sh", Owner::User),
            ("build.sh", Owner::User),
            ("/home/me/configure/run.sh", Owner::User),
        ];
        for (path, owner) in cases {
            assert_eq!(Owner::of(path.as_bytes()), owner, "{path}");
        }
    }
}
