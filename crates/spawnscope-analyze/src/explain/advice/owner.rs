//! Who maintains the code that requests launches: the user, a generator (`configure`, `libtool`),
//! a third party (`node_modules`, `/usr`), or none of them (the commands of a coding agent). Advice about code that the user does not maintain
//! ranks below advice about the user's own code.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ptr;

use crate::explain::advice::context::RuleContext;
use crate::model::launch::{Exec, base_name, is_version_of};
use crate::patterns::runtimes::Runtime;
use crate::patterns::words::Words;
use crate::predict::dependence::is_launcher;
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
    /// The input of a program that is given its commands, as a coding agent is.
    Input,
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
const GENERATED_SCRIPTS: Words = Words(
    "ar-lib compile config.guess config.status config.sub configure depcomp install-sh libtool ltmain.sh missing
     mkinstalldirs py-compile test-driver ylwrap",
);
/// Directories of generated code.
const GENERATED_DIRECTORIES: Words = Words("CMakeFiles autom4te.cache");
/// Directories of installed or vendored dependencies.
const THIRD_PARTY_DIRECTORIES: Words =
    Words("dist-packages gems node_modules perl5 site-packages third_party vendor vendor_perl");
/// Prefixes of paths of installed packages.
const INSTALLED_PREFIXES: [&[u8]; 6] = [b"/usr/", b"/lib/", b"/bin/", b"/sbin/", b"/nix/store/", b"/gnu/store/"];
/// The directory below `/usr/` in which users keep their own scripts.
const LOCAL_PREFIX: &[u8] = b"/usr/local/";
/// Parts of paths of dependencies that a package manager downloaded.
const DOWNLOADED_PARTS: [&[u8]; 9] = [
    b"/.asdf/",
    b"/.cargo/registry/",
    b"/.nvm/",
    b"/.oh-my-zsh/",
    b"/.pyenv/",
    b"/.rbenv/",
    b"/.rustup/toolchains/",
    b"/.sdkman/",
    b"/go/pkg/mod/",
];
/// Compiled programs that decide for themselves what to launch, wherever they are installed. No script or makefile of the user requests these
/// launches. Programs of packages count, too.
const SELF_DIRECTED: Words =
    Words("apt apt-get c++ cargo cc clang clang++ cmake collect2 dpkg g++ gcc git go lto-wrapper ninja rpm rustc");
impl Owner {
    /// Returns who maintains a file, by its path.
    #[must_use]
    pub fn of(path: &[u8]) -> Owner {
        let mut directories = path.rsplit(|byte| *byte == b'/').skip(1);
        if GENERATED_SCRIPTS.contains(base_name(path)) {
            return Owner::Generated;
        }
        let kind = directories.find_map(|directory| match directory {
            _ if GENERATED_DIRECTORIES.contains(directory) => Some(Owner::Generated),
            _ if THIRD_PARTY_DIRECTORIES.contains(directory) => Some(Owner::ThirdParty),
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
/// it, or if it is unknown.
pub(super) fn foreign_code(context: &RuleContext<'_, '_>, launches: &[u32]) -> Option<ForeignCode> {
    let mut known: HashMap<_, Option<(Owner, &[u8])>> = HashMap::new();
    let mut files: BTreeMap<(Owner, &[u8]), usize> = BTreeMap::new();
    for &launch in launches {
        // Most launches have the code of others.
        let launcher = context.forest().launcher(launch as usize);
        let place =
            (context.sites.number_of(launch as usize), launcher.map(ptr::from_ref), context.given[launch as usize]);
        let code = *known.entry(place).or_insert_with(|| code_of(context, launch));
        code.into_iter().for_each(|code| *files.entry(code).or_default() += 1);
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
    let call_site = context.sites.call_site_of(launch as usize);
    let script_call_site = call_site.filter(|call_site| call_site.language != Language::Native);
    let launcher = context.forest().launcher(launch as usize);
    let program = launcher.filter(|_| script_call_site.is_none()).filter(is_self_directed);
    if let Some(program) = program {
        return Some((Owner::ThirdParty, program.path()));
    }
    // Code in an `eval` has no file, but belongs to the script.
    let file = script_call_site.and_then(|call_site| call_site.file.as_deref());
    let file = file.or_else(|| launcher.and_then(script_of));
    if context.given[launch as usize] {
        return Some((Owner::Input, file.or(launcher.map(Exec::path))?));
    }
    let is_generated = script_call_site.is_some_and(is_generated_makefile);
    file.map(|file| (if is_generated { Owner::Generated } else { Owner::of(file) }, file))
}

fn is_self_directed(exec: &&Exec<'_>) -> bool {
    let name = exec.program_name();
    let is_compiled = matches!(Runtime::named(name), Runtime::Native | Runtime::CMake);
    let is_packaged = is_compiled && !is_launcher(name) && Owner::of(exec.path()) == Owner::ThirdParty;
    is_packaged || SELF_DIRECTED.iter().any(|program| is_version_of(name, program.as_bytes()))
}

/// Whether the call site is in a makefile whose text says that it was generated. The path does not
/// show this: Automake's makefiles are called Makefile, too.
fn is_generated_makefile(call_site: &CallSite) -> bool {
    call_site.language == Language::Make && call_site.module.is_some()
}

/// Returns the path of the script that an exec ran.
fn script_of<'e>(exec: &'e Exec<'_>) -> Option<&'e [u8]> {
    let is_interpreter =
        !matches!(Runtime::named(exec.program_name()), Runtime::Native | Runtime::Make | Runtime::CMake);
    let first = exec.arguments().nth(1).filter(|first| is_interpreter && !first.starts_with(b"-"));
    exec.interpreter().map(|_| exec.path()).or(first)
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
