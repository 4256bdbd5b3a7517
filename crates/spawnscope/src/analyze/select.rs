//! Which launches are meant: `dirname`, `argv=*--version*`, `parent=python3*`, `line=unpack.sh:14`, or several of these joined
//! by commas, which must then all hold.

use globset::{GlobBuilder, GlobMatcher};

use super::launch::{Launch, base_name};
use super::tree::Forest;

/// What launches are selected by.
#[derive(Clone, Debug)]
pub struct Selector {
    text: String,
    terms: Vec<Term>,
}

#[derive(Clone, Debug)]
enum Term {
    /// Base name of a program: the one that the launch became, or `(bash)` for a fork of bash.
    Program(GlobMatcher),
    /// The arguments joined by blanks, of any of its execs.
    Argv(GlobMatcher),
    /// Base name of the parent's program.
    Parent(GlobMatcher),
}

/// Why a text selects nothing.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// There is nothing in it, or between two commas.
    #[error("`{0}` has an empty term: name a program, as in `dirname`, or use argv=GLOB, parent=GLOB")]
    Empty(String),
    /// The pattern is none.
    #[error("`{pattern}` is no pattern: {reason}")]
    Glob {
        /// What was given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Another word before `=`.
    #[error("launches cannot be selected by `{0}`: use a program's name, argv=GLOB, parent=GLOB or line=FILE:N")]
    Key(String),
    /// Script lines are not in this recording.
    #[error(
        "`{0}` selects by script line, which recordings do not hold yet: use a program's name, argv=GLOB or parent=GLOB"
    )]
    Line(String),
}

impl Selector {
    /// Reads a selection.
    ///
    /// # Errors
    /// When a term is empty, no pattern, or of an unknown kind.
    pub fn parse(text: &str) -> Result<Selector, SelectError> {
        let terms: Result<Vec<Term>, SelectError> = text.split(',').map(|term| Term::parse(term, text)).collect();
        Ok(Selector {
            text: text.to_owned(),
            terms: terms?,
        })
    }

    /// As it was typed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The selected launches by index, in the order of their numbers.
    #[must_use]
    pub fn select(&self, forest: &Forest<'_>) -> Vec<u32> {
        let launches = (0..).zip(&forest.launches);
        let selected = launches.filter(|(_, launch)| launch.is_launch() && self.holds(launch));
        selected.map(|(index, _)| index).collect()
    }

    fn holds(&self, launch: &Launch<'_>) -> bool {
        self.terms.iter().all(|term| term.holds(launch))
    }
}

impl Term {
    fn parse(term: &str, whole: &str) -> Result<Term, SelectError> {
        match term.split_once('=') {
            Some((_, "")) | None if term.is_empty() || term.ends_with('=') => Err(SelectError::Empty(whole.to_owned())),
            Some(("argv", pattern)) => Ok(Term::Argv(glob(pattern)?)),
            Some(("parent", pattern)) => Ok(Term::Parent(glob(pattern)?)),
            Some(("line", _)) => Err(SelectError::Line(term.to_owned())),
            Some((key, _)) => Err(SelectError::Key(key.to_owned())),
            None => Ok(Term::Program(glob(term)?)),
        }
    }

    fn holds(&self, launch: &Launch<'_>) -> bool {
        match self {
            Term::Program(glob) => {
                let of_execs = || launch.execs.iter().map(|exec| base_name(exec.path));
                matches(glob, &launch.command.label()) || of_execs().any(|name| matches(glob, name))
            }
            Term::Argv(glob) => launch.execs.iter().any(|exec| {
                let argv: Vec<&[u8]> = exec.arguments().collect();
                matches(glob, &argv.join(&b' '))
            }),
            Term::Parent(glob) => launch.parent.is_some() && matches(glob, launch.birth_command.name),
        }
    }
}

fn matches(glob: &GlobMatcher, bytes: &[u8]) -> bool {
    use std::os::unix::ffi::OsStrExt;
    glob.is_match(std::ffi::OsStr::from_bytes(bytes))
}

fn glob(pattern: &str) -> Result<GlobMatcher, SelectError> {
    let built = GlobBuilder::new(pattern).literal_separator(false).build();
    built
        .map(|glob| glob.compile_matcher())
        .map_err(|error| SelectError::Glob {
            pattern: pattern.to_owned(),
            reason: error.kind().to_string(),
        })
}
