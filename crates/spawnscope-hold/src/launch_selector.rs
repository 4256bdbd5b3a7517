//! Selects the launch to hold: the n-th launch whose program or arguments match a pattern. A launch
//! counts once, at its first matching exec, even if it then executes another matching program, as a
//! wrapper of the same name does.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use globset::{GlobBuilder, GlobMatcher};

use spawnscope_data::event::Pid;

#[derive(Debug)]
pub struct LaunchSelector {
    pattern: GlobMatcher,
    nth: u32,
    matched: HashSet<Pid>,
    pub(super) count: u32,
}

impl LaunchSelector {
    /// Selects the `nth` matching launch, counted from 1.
    pub fn new(pattern: &str, nth: u32) -> Result<LaunchSelector, globset::Error> {
        let glob = GlobBuilder::new(pattern).literal_separator(false).build()?;
        Ok(LaunchSelector { pattern: glob.compile_matcher(), nth, matched: HashSet::new(), count: 0 })
    }

    /// Counts the launch that this exec belongs to, unless the exec does not match or an earlier
    /// one did. Returns whether it is the wanted launch.
    pub(super) fn count_exec(&mut self, pid: Pid, program: Option<&[u8]>, arguments: &[Vec<u8>]) -> bool {
        if !self.matches(program, arguments) || !self.matched.insert(pid) {
            return false;
        }
        self.count += 1;
        self.count == self.nth
    }

    /// Forgets a process that has ended, because a new process with its pid is another launch.
    pub(super) fn forget(&mut self, pid: Pid) {
        self.matched.remove(&pid);
    }

    /// Whether the pattern matches the base name of the executed file, or the arguments joined by
    /// spaces.
    fn matches(&self, program: Option<&[u8]>, arguments: &[Vec<u8>]) -> bool {
        let name = program.and_then(|path| path.rsplit(|byte| *byte == b'/').next());
        let line = arguments.join(&b' ');
        [name, Some(&line)].into_iter().flatten().any(|text| self.pattern.is_match(OsStr::from_bytes(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_wanted(selector: &mut LaunchSelector, pid: i32, program: &str, arguments: &[&str]) -> bool {
        let arguments: Vec<Vec<u8>> = arguments.iter().map(|text| text.as_bytes().to_vec()).collect();
        selector.count_exec(Pid(pid), Some(program.as_bytes()), &arguments)
    }

    #[test]
    fn a_pattern_matches_the_base_name_or_all_the_arguments() {
        for pattern in ["git", "g?t", "git *", "*status", "*/a/* status", "git -C /a/b status"] {
            assert!(matches_git_status(pattern), "{pattern}");
        }
        for pattern in ["gi", "status", "/usr/bin/git", "Git", "git status"] {
            assert!(!matches_git_status(pattern), "{pattern}");
        }
        let mut unreadable = LaunchSelector::new("*true", 1).unwrap();
        assert!(
            unreadable.count_exec(Pid(1), None, &[b"/bin/true".to_vec()]),
            "the arguments match, although the program is unknown"
        );
        assert!(LaunchSelector::new("[", 1).is_err());
    }

    fn matches_git_status(pattern: &str) -> bool {
        let mut selector = LaunchSelector::new(pattern, 1).unwrap();
        is_wanted(&mut selector, 1, "/usr/bin/git", &["git", "-C", "/a/b", "status"])
    }

    #[test]
    fn each_matching_launch_is_counted_once() {
        let mut selector = LaunchSelector::new("tool", 3).unwrap();
        assert!(!is_wanted(&mut selector, 1, "/shims/tool", &["sh", "/shims/tool"]));
        assert!(!is_wanted(&mut selector, 1, "/bin/tool", &["tool"]), "the same launch");
        assert!(!is_wanted(&mut selector, 2, "/bin/other", &["other"]));
        selector.forget(Pid(1));
        assert!(!is_wanted(&mut selector, 1, "/bin/tool", &["tool"]), "the second launch, with a reused pid");
        assert_eq!(selector.count, 2);
        assert!(is_wanted(&mut selector, 4, "/bin/tool", &["tool"]));
        assert!(!is_wanted(&mut selector, 5, "/bin/tool", &["tool"]), "only one launch is held");
    }
}
