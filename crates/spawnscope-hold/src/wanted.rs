//! Selects the launch to hold: the n-th whose program or arguments match a pattern. A launch counts once, at its first matching exec: a
//! wrapper that executes a program of the same name is one launch.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use globset::{GlobBuilder, GlobMatcher};

use spawnscope_data::event::Pid;

/// Counts matching launches up to the wanted one.
#[derive(Debug)]
pub struct Wanted {
    pattern: GlobMatcher,
    nth: u32,
    /// Counted launches that have not ended.
    counted: HashSet<Pid>,
    count: u32,
}

impl Wanted {
    /// Selects the `nth` matching launch, counted from 1.
    ///
    /// # Errors
    /// If the pattern is invalid.
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

    /// Forgets a process that has ended: a process that reuses its pid is another launch.
    pub(super) fn forget(&mut self, pid: Pid) {
        self.counted.remove(&pid);
    }

    /// How many launches matched.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Matches the base name of the executed file, or the arguments joined by spaces.
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
            "the second, with a reused pid"
        );
        assert_eq!(wanted.count(), 2);
        assert!(is(&mut wanted, 4, "/bin/tool", &["tool"]));
        assert!(!is(&mut wanted, 5, "/bin/tool", &["tool"]), "only one is held");
    }
}
