//! Which launch is to be held: the n-th whose program or arguments match a pattern. A launch counts once, at its first exec that
//! matches: a wrapper that executes its program by the same name is one launch.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use globset::{GlobBuilder, GlobMatcher};

use crate::event::Pid;

/// Counts launches up to the wanted one.
#[derive(Debug)]
pub struct Wanted {
    pattern: GlobMatcher,
    nth: u32,
    /// Those of them that have not ended.
    counted: HashSet<Pid>,
    count: u32,
}

impl Wanted {
    /// The `nth` launch that matches, counted from 1.
    ///
    /// # Errors
    /// What is wrong with the pattern.
    pub fn new(pattern: &str, nth: u32) -> Result<Wanted, globset::Error> {
        let glob = GlobBuilder::new(pattern).literal_separator(false).build()?;
        Ok(Wanted {
            pattern: glob.compile_matcher(),
            nth,
            counted: HashSet::new(),
            count: 0,
        })
    }

    /// Whether this exec makes its launch the wanted one.
    pub(super) fn is(&mut self, pid: Pid, program: Option<&[u8]>, arguments: &[Vec<u8>]) -> bool {
        if !self.matches(program, arguments) || !self.counted.insert(pid) {
            return false;
        }
        self.count += 1;
        self.count == self.nth
    }

    /// A process has ended: who gets its number next is another launch.
    pub(super) fn forget(&mut self, pid: Pid) {
        self.counted.remove(&pid);
    }

    /// How many matched.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// By the base name of the file that was executed, or by the arguments joined by blanks.
    fn matches(&self, program: Option<&[u8]>, arguments: &[Vec<u8>]) -> bool {
        let fits = |bytes: &[u8]| self.pattern.is_match(OsStr::from_bytes(bytes));
        let name = program.and_then(|path| path.rsplit(|byte| *byte == b'/').next());
        name.is_some_and(fits) || fits(&arguments.join(&b' '))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(wanted: &mut Wanted, pid: i32, program: &str, arguments: &[&str]) -> bool {
        let arguments: Vec<Vec<u8>> = arguments.iter().map(|text| text.as_bytes().to_vec()).collect();
        wanted.is(Pid(pid), Some(program.as_bytes()), &arguments)
    }

    #[test]
    fn a_pattern_meets_the_base_name_or_all_the_arguments() {
        let matches = |pattern: &str| {
            let mut wanted = Wanted::new(pattern, 1).unwrap();
            is(&mut wanted, 1, "/usr/bin/git", &["git", "-C", "/a/b", "status"])
        };
        for pattern in ["git", "g?t", "git *", "*status", "*/a/* status", "git -C /a/b status"] {
            assert!(matches(pattern), "{pattern}");
        }
        for pattern in ["gi", "status", "/usr/bin/git", "Git", "git status"] {
            assert!(!matches(pattern), "{pattern}");
        }
        let mut unreadable = Wanted::new("*true", 1).unwrap();
        assert!(
            unreadable.is(Pid(1), None, &[b"/bin/true".to_vec()]),
            "by its arguments alone"
        );
        assert!(Wanted::new("[", 1).is_err());
    }

    #[test]
    fn launches_are_counted_once_each() {
        let mut wanted = Wanted::new("tool", 3).unwrap();
        assert!(!is(&mut wanted, 1, "/shims/tool", &["sh", "/shims/tool"]));
        assert!(!is(&mut wanted, 1, "/bin/tool", &["tool"]), "the same launch");
        assert!(!is(&mut wanted, 2, "/bin/other", &["other"]));
        wanted.forget(Pid(1));
        assert!(
            !is(&mut wanted, 1, "/bin/tool", &["tool"]),
            "the second, by a number used again"
        );
        assert_eq!(wanted.count(), 2);
        assert!(is(&mut wanted, 4, "/bin/tool", &["tool"]));
        assert!(!is(&mut wanted, 5, "/bin/tool", &["tool"]), "only one is held");
    }
}
