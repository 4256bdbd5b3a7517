//! Where the time of a shell's start, and of each prompt, goes: a tree of lines, from the line of
//! the start-up file inwards. Each line has the time of programs that the shell waited for, and the
//! time of its own work. `cures` says what to change in a line.

pub mod cures;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::explain::advice::Owner;
use crate::model::launch::base_name;
use spawnscope_data::event::{Frame, Nanos, Pid};
use spawnscope_data::shell_start::Observed;

/// Lines that take less than this share of the whole are left out.
const MIN_SHARE: f64 = 0.02;
/// Maximum depth of the tree.
const MAX_DEPTH: usize = 4;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub file: Option<Vec<u8>>,
    /// The line; unknown in functions of an interactive bash.
    pub line: Option<u32>,
    pub function: Option<Vec<u8>>,
}

/// The time that was spent at a place.
#[derive(Clone, Debug, Default)]
pub struct Spent {
    /// The place. The root has none.
    pub place: Place,
    /// The time of the shell's own work.
    pub own: Nanos,
    /// The time for which the shell waited for programs.
    pub launched: Nanos,
    /// These programs, the slowest first.
    pub programs: Vec<Program>,
    /// The places that it called, the slowest first. The rest of the time was spent at this place
    /// itself.
    pub inner: Vec<Spent>,
}

#[derive(Clone, Debug)]
pub struct Program {
    pub name: Vec<u8>,
    /// How often it was seen, per start or prompt. Processes that end within a millisecond can be
    /// missed.
    pub count: u64,
    pub time: Nanos,
}

/// How long a shell takes to start, where that time goes, and what to change.
#[derive(Clone, Debug, Default)]
pub struct StartUp {
    /// The shell and its arguments.
    pub command: Vec<String>,
    /// The time to the first prompt: the median of starts that were not observed.
    pub first_prompt: Nanos,
    /// The number of these starts.
    pub starts: usize,
    /// The median time of a prompt after the first one.
    pub prompt: Option<Nanos>,
    /// The number of these prompts.
    pub prompts: usize,
    /// How much longer an observed start takes.
    pub observing: Nanos,
    /// Where the time to the first prompt goes.
    pub before_prompt: Spent,
    /// Where the time of each further prompt goes.
    pub at_prompt: Spent,
    /// The text of each line that was found in its file.
    pub texts: BTreeMap<Place, String>,
    /// What to change, most saving first.
    pub advice: Vec<LineAdvice>,
}

/// What to change in a line of the user's.
#[derive(Clone, Debug)]
pub struct LineAdvice {
    pub place: Place,
    /// Whether the line is executed at each prompt.
    pub at_prompt: bool,
    pub cure: cures::Cure,
    /// The diff of its file; empty if there is none.
    pub patch: Vec<u8>,
    /// Why there is none, although the cure has an edit.
    pub refusal: Option<String>,
}

/// Lines that take less time than this need no change.
const MIN_ADVISED: Nanos = Nanos(3_000_000);
/// Lines that take a smaller share of the whole need no change.
const MIN_ADVISED_SHARE: f64 = 0.05;

/// Returns what to change in which lines, until the first prompt and at each further one. If most
/// time of a line is that of lines that it calls or sources, the advice is about these, unless a
/// cure for the outer line is known. Work that each prompt repeats is named once. `texts` has the
/// text of the lines.
#[must_use]
pub fn advise(before: &Spent, at_prompt: &Spent, shell: &str, texts: &BTreeMap<Place, String>) -> Vec<LineAdvice> {
    let mut advice = advise_on(before, false, shell, texts);
    let at_prompts = advise_on(at_prompt, true, shell, texts);
    advice.retain(|one| one.cure.edit.is_some() || at_prompts.iter().all(|other| other.place != one.place));
    advice.extend(at_prompts);
    advice
}

fn advise_on(root: &Spent, at_prompt: bool, shell: &str, texts: &BTreeMap<Place, String>) -> Vec<LineAdvice> {
    let min = MIN_ADVISED.max(Nanos((root.total().0 as f64 * MIN_ADVISED_SHARE) as u64));
    let mut advisor = Advisor { root, at_prompt, min, shell, texts, advice: Vec::new() };
    root.inner.iter().for_each(|line| advisor.line(line, None, None));
    let mut advice = advisor.advice;
    advice.sort_by_key(|advice| Reverse(advice.cure.saving));
    advice
}

struct Advisor<'a> {
    root: &'a Spent,
    at_prompt: bool,
    min: Nanos,
    shell: &'a str,
    texts: &'a BTreeMap<Place, String>,
    advice: Vec<LineAdvice>,
}

impl Advisor<'_> {
    /// Finds advice for a line. `user` and `package` are the innermost lines of the user and of a
    /// package on the way to it. If files of a package call each other, the advice names the line
    /// of the second file: it is that of a plugin, which the user can turn off.
    fn line(&mut self, line: &Spent, user: Option<&Place>, package: Option<&Place>) {
        if line.total() < self.min {
            return;
        }
        let is_users = is_users(&line.place);
        let text = self.texts.get(&line.place).filter(|_| is_users);
        let mut cures = text.map_or_else(Vec::new, |text| cures::cures(text, self.shell, line, self.root));
        cures.retain(|cure| cure.saving >= self.min);
        let is_plugin = !is_users && package.is_some_and(|package| package.file != line.place.file);
        let inner: Vec<&Spent> = line.inner.iter().filter(|inner| inner.total() >= self.min).collect();
        let may_lead = !is_plugin || inner.iter().any(|inner| self::is_users(&inner.place));
        let in_inner: u64 = inner.iter().map(|inner| inner.total().0).sum();
        if cures.is_empty() && may_lead && in_inner * 2 > line.total().0 {
            let package = (!is_users).then_some(&line.place);
            let user = text.map(|_| &line.place).or(user);
            return inner.into_iter().for_each(|inner| self.line(inner, user, package));
        }
        if cures.is_empty() {
            let mut cure = cures::general(line, self.at_prompt);
            if !is_users {
                let loaded = user.and_then(|user| Some((user.file.as_deref()?.escape_ascii(), user.line?)));
                let loaded = loaded.map_or_else(String::new, |(file, line)| format!(", loaded at {file}:{line}"));
                cure.limits =
                    format!("this file belongs to a package{loaded}: turn off what needs it, or tell its authors");
            }
            cures.push(cure);
        }
        let (place, at_prompt) = (&line.place, self.at_prompt);
        let advised = |cure| LineAdvice { place: place.clone(), at_prompt, cure, patch: Vec::new(), refusal: None };
        self.advice.extend(cures.into_iter().map(advised));
    }
}

/// Whether the file of a place is the user's own. Programs write the dump of completions, and the
/// files below `.cache`.
fn is_users(place: &Place) -> bool {
    let is_saved = |file: &[u8]| {
        base_name(file).starts_with(b".zcompdump") || file.split(|byte| *byte == b'/').any(|part| part == b".cache")
    };
    place.file.as_deref().is_none_or(|file| Owner::of(file) == Owner::User && !is_saved(file))
}

impl Spent {
    /// Returns the time with all that was called.
    #[must_use]
    pub fn total(&self) -> Nanos {
        Nanos(self.own.0 + self.launched.0)
    }

    /// Returns the time that was not spent in the places that it called.
    #[must_use]
    pub fn outside_of_lines(&self) -> Spent {
        let mut rest = Spent { inner: Vec::new(), ..self.clone() };
        for inner in &self.inner {
            rest.own = rest.own.since(inner.own);
            rest.launched = rest.launched.since(inner.launched);
            for program in &inner.programs {
                if let Some(of_all) = rest.programs.iter_mut().find(|all| all.name == program.name) {
                    of_all.time = of_all.time.since(program.time);
                    of_all.count = of_all.count.saturating_sub(program.count);
                }
            }
        }
        // Smaller times come from rounding, and from lines that are left out.
        let min = rest.launched.0 / 8;
        rest.programs.retain(|program| program.time.0 > min);
        rest.programs.sort_by_key(|program| Reverse(program.time));
        rest
    }
}

/// Returns what the starts (or the prompts after the first) were spent on. `expected` is the time
/// of one that was not observed: observing costs time, and the shares are applied to this time.
/// `count` is the number of starts (or prompts) in `observed`.
#[must_use]
pub fn spent(observed: &[Observed], after_prompt: bool, expected: Nanos, count: u64) -> Spent {
    let observed: Vec<&Observed> =
        observed.iter().filter(|observed| observed.activity.after_prompt == after_prompt).collect();
    let total: u64 = observed.iter().map(|observed| observed.time.0).sum();
    if total == 0 {
        // Too short to be observed.
        return Spent { own: expected, ..Spent::default() };
    }
    let scale = expected.0 as f64 / total as f64;
    let min = (total as f64 * MIN_SHARE) as u64;
    let tree = Tree { scale, count: count.max(1), min };
    tree.spent(Place::default(), &observed, 0)
}

struct Tree {
    /// The nanoseconds of an unobserved start for each observed nanosecond.
    scale: f64,
    count: u64,
    min: u64,
}

impl Tree {
    fn spent(&self, place: Place, observed: &[&Observed], depth: usize) -> Spent {
        let mut spent = Spent { place, ..Spent::default() };
        let mut programs: BTreeMap<&[u8], (BTreeSet<Pid>, u64)> = BTreeMap::new();
        let mut inner: BTreeMap<Place, Vec<&Observed>> = BTreeMap::new();
        let (mut own, mut launched) = (0, 0);
        for observed in observed {
            match &observed.activity.program {
                None => own += observed.time.0,
                Some(program) => {
                    launched += observed.time.0;
                    let (pids, time) = programs.entry(&program.name).or_default();
                    pids.insert(program.pid);
                    *time += observed.time.0;
                }
            }
            let frames = &observed.activity.frames;
            if let Some(frame) = frames.len().checked_sub(depth + 1).and_then(|at| frames.get(at)) {
                inner.entry(place_of(frame)).or_default().push(observed);
            }
        }
        (spent.own, spent.launched) = (self.scaled(own), self.scaled(launched));
        let program = |(name, (pids, time)): (&[u8], (BTreeSet<Pid>, u64))| Program {
            name: name.to_vec(),
            count: (pids.len() as u64).div_ceil(self.count),
            time: self.scaled(time),
        };
        spent.programs = programs.into_iter().map(program).collect();
        spent.programs.sort_by_key(|program| Reverse(program.time));
        if depth < MAX_DEPTH {
            inner.retain(|_, observed| observed.iter().map(|observed| observed.time.0).sum::<u64>() >= self.min);
            spent.inner = inner.into_iter().map(|(place, observed)| self.spent(place, &observed, depth + 1)).collect();
            spent.inner.sort_by_key(|spent| Reverse(spent.total()));
        }
        spent
    }

    fn scaled(&self, time: u64) -> Nanos {
        Nanos((time as f64 * self.scale) as u64)
    }
}

fn place_of(frame: &Frame) -> Place {
    Place { file: frame.file.clone(), line: frame.line, function: frame.function.clone() }
}

#[cfg(test)]
mod tests {
    use spawnscope_data::event::Language;
    use spawnscope_data::shell_start::{Activity, LaunchedProgram};

    use super::*;

    fn observed(lines: &[(&str, u32)], program: Option<(&str, i32)>, time: u64) -> Observed {
        let frame = |(file, line): &(&str, u32)| Frame {
            file: Some(file.as_bytes().to_vec()),
            line: Some(*line),
            ..Frame::unknown(Language::Bash)
        };
        let program = program.map(|(name, pid)| LaunchedProgram { name: name.into(), pid: Pid(pid) });
        let activity = Activity { after_prompt: false, frames: lines.iter().map(frame).collect(), program };
        Observed { activity, time: Nanos(time) }
    }

    #[test]
    fn advice_names_the_users_line_and_each_cause_once() {
        let line = |file: &str, line: u32, inner: Vec<Spent>| Spent {
            place: Place { file: Some(file.into()), line: Some(line), function: None },
            own: Nanos(10_000_000),
            inner,
            ..Spent::default()
        };
        let root = |inner| Spent { own: Nanos(30_000_000), inner, ..Spent::default() };
        let completions = line("/usr/share/zsh/compinit", 4, vec![line("/home/me/.zcompdump", 670, Vec::new())]);
        let package = line("/usr/share/plugin.zsh", 9, vec![completions]);
        let hook = line("/home/me/hook.sh", 1, Vec::new());
        let users = line("/home/me/.zshrc", 5, vec![package]);
        let texts = BTreeMap::from([(users.place.clone(), ". $plugin".to_owned())]);
        let advice = advise(&root(vec![users, hook.clone()]), &root(vec![hook]), "zsh", &texts);
        let found: Vec<_> = advice.iter().map(|advice| (advice.place.line, advice.at_prompt)).collect();
        assert_eq!(found, [(Some(4), false), (Some(1), true)]);
        assert!(advice[0].cure.limits.contains("loaded at /home/me/.zshrc:5"), "{}", advice[0].cure.limits);
    }

    #[test]
    fn time_is_told_by_line_from_the_start_up_file_inwards() {
        let observed = [
            observed(&[("rc", 1)], None, 20),
            observed(&[("lib", 7), ("rc", 2)], Some(("git", 10)), 30),
            observed(&[("lib", 7), ("rc", 2)], Some(("git", 11)), 30),
            observed(&[("lib", 9), ("rc", 2)], None, 20),
        ];
        // Observing doubled the time, of two starts.
        let root = spent(&observed, false, Nanos(25), 2);
        assert_eq!((root.own, root.launched), (Nanos(10), Nanos(15)));
        let lines: Vec<_> = root.inner.iter().map(|line| (line.place.line, line.total())).collect();
        assert_eq!(lines, [(Some(2), Nanos(20)), (Some(1), Nanos(5))]);
        let inner: Vec<_> = root.inner[0].inner.iter().map(|line| (line.place.line, line.total())).collect();
        assert_eq!(inner, [(Some(7), Nanos(15)), (Some(9), Nanos(5))]);
        assert_eq!(root.inner[0].programs[0].count, 1);
        assert_eq!(spent(&observed, true, Nanos(25), 2).own, Nanos(25), "too short to be observed");
    }
}
