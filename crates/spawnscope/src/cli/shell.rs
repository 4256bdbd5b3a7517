//! `spawnscope shell`: starts the user's shell in a pseudo-terminal several times, and reports what
//! the time to its prompts is spent on.
//!
//! Starts that are observed alternate with starts that are not: the first show on what time is
//! spent, the others how long a start takes.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueHint};

use super::args::parse_seconds;
use super::output;
use super::source_files::name_below;
use crate::analyze::explain::advice::{Owner, Splice, spliced};
use crate::analyze::explain::start_up::{LineAdvice, Place, Spent, StartUp, advise, cures, spent};
use crate::collect::shell_start::{Failure, ShellCommand, Start, Starter};
use crate::event::{Frame, Nanos};
use crate::held::find_program;
use crate::present::text::escape;
use crate::present::{patch, shell};
use crate::statistics::median;
use spawnscope_data::shell_start::Observed;

/// The smallest and largest number of starts, and how long they may take together if the smallest
/// number takes less.
const MIN_STARTS: u32 = 3;
const MAX_STARTS: u32 = 11;
const MAX_TIME: Duration = Duration::from_secs(1);
/// Start-up files are smaller.
const MAX_BYTES: u64 = 1 << 20;

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope shell                # the shell in $SHELL
  spawnscope shell zsh --login
  spawnscope shell bash --prompt 20  # what each prompt costs
  cd; spawnscope shell --patch | patch -p0  # make the simple changes";

#[derive(Debug, Args)]
pub struct ShellArguments {
    /// The shell: bash, zsh, dash, fish, or a path [default: $SHELL]
    #[arg(value_name = "SHELL", value_hint = ValueHint::CommandName)]
    pub shell: Option<OsString>,
    /// Start the shell as a login shell
    #[arg(short, long)]
    pub login: bool,
    /// Press Enter N times, and report what each further prompt costs
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub prompt: u32,
    /// End a shell that shows no prompt for S seconds, and print what it was doing
    #[arg(long, value_name = "S", value_hint = ValueHint::Other, default_value = "20", value_parser = parse_seconds)]
    pub timeout: Duration,
    /// Print the changes that need no decision, as a unified diff for `patch -p0`. It only changes
    /// files below the current directory
    #[arg(long, conflicts_with = "json")]
    pub patch: bool,
    /// Print JSON (schema_version 1)
    #[arg(long)]
    pub json: bool,
}

pub fn run(arguments: &ShellArguments) -> Result<()> {
    let given = arguments.shell.clone().or_else(|| env::var_os("SHELL")).filter(|shell| !shell.is_empty());
    let file = given.unwrap_or_else(|| "/bin/sh".into());
    let mut words = vec![file];
    words.extend(arguments.login.then(|| "-l".into()));
    words.push("-i".into());
    let command = ShellCommand { words, prompts: arguments.prompt, timeout: arguments.timeout };
    let mut report = report(&command, &starts(&command)?);
    let directory = env::current_dir().and_then(|directory| directory.canonicalize())?;
    let edits = apply(&mut report, &directory);
    if arguments.patch {
        return print_patch(&report, &edits);
    }
    let text = if arguments.json {
        shell::json(&report)
    } else {
        output::with_glyphs(shell::render(&report, output::width(&io::stdout()), env::var("HOME").ok().as_deref()))
    };
    output::print(&text, "report")
}

/// Starts the shell, observed and not observed in turn, after a first start that brings files into
/// memory and may write caches, and is observed in order to explain a failure. Only the first two
/// starts after it go on to further prompts.
fn starts(command: &ShellCommand) -> Result<[Vec<Start>; 2]> {
    let mut starter =
        Starter::new(find_program(&command.words[0]).ok().and_then(|path| File::open(path).ok()).as_ref());
    let began = Instant::now();
    let mut starts = [Vec::new(), Vec::new()];
    for number in 0..MAX_STARTS {
        let per_start = began.elapsed() / number.max(1);
        if number >= MIN_STARTS && began.elapsed() + per_start > MAX_TIME {
            break;
        }
        let prompts = if matches!(number, 1 | 2) { command.prompts } else { 0 };
        let observes = number % 2 == 0;
        let one = starter.start(&ShellCommand { prompts, ..command.clone() }, observes);
        let one = one.with_context(|| format!("failed to start {}", escape(command.words[0].as_bytes())))?;
        if let Some(failure) = &one.failure {
            bail!(explain(failure, command.timeout));
        }
        if number > 0 {
            starts[usize::from(observes)].push(one);
        }
    }
    Ok(starts)
}

fn explain(failure: &Failure, timeout: Duration) -> String {
    let place = |frames: &[Frame]| {
        let frame = frames.iter().find(|frame| frame.file.is_some() && frame.line.is_some())?;
        let (file, line) = (escape(frame.file.as_deref()?), frame.line?);
        let text = line_of(Path::new(OsStr::from_bytes(frame.file.as_deref()?)), line).ok();
        Some(format!(
            "{file}:{line}{}",
            text.map_or_else(String::new, |text| format!(", `{}`", escape(text.trim().as_bytes())))
        ))
    };
    match failure {
        Failure::Ended(status) => {
            format!("the shell ended before it showed a prompt{}", super::exit::outcome_clause(*status))
        }
        Failure::Asks(frames) => format!(
            "the shell showed no prompt: it waits for input at {}",
            place(frames).unwrap_or_else(|| "an unknown line".to_owned())
        ),
        Failure::Busy(frames, program) => {
            let doing = program.as_ref().map_or_else(String::new, |program| {
                format!(", waiting for {} (process {})", escape(&program.name), program.pid.0)
            });
            let at = place(frames).unwrap_or_else(|| "an unknown line".to_owned());
            format!("the shell showed no prompt within {} s: it was at {at}{doing}", timeout.as_secs_f64())
        }
    }
}

fn report(command: &ShellCommand, [plain, observed]: &[Vec<Start>; 2]) -> StartUp {
    let times = |starts: &[Start]| median(starts.iter().map(|start| start.prompts[0].0 as f64));
    let first = |starts: &[Start]| Nanos(times(starts).unwrap_or_default() as u64);
    let further: Vec<f64> = plain.iter().flat_map(|start| &start.prompts[1..]).map(|time| time.0 as f64).collect();
    let prompts = further.len();
    let prompt = median(further).map(|time| Nanos(time as u64));
    let mut all: Vec<_> = observed.iter().flat_map(|start| start.observed.iter().cloned()).collect();
    forget_lines_of_evaluated(&mut all);
    let observed_prompts: usize = observed.iter().map(|start| start.prompts.len() - 1).sum();
    let first_prompt = first(plain);
    let before_prompt = spent(&all, false, first_prompt, observed.len() as u64);
    let at_prompt = spent(&all, true, prompt.unwrap_or_default(), observed_prompts as u64);
    let mut texts = BTreeMap::new();
    [&before_prompt, &at_prompt].into_iter().for_each(|root| find_texts(root, &mut texts));
    let shell = Path::new(&command.words[0]).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let advice = advise(&before_prompt, &at_prompt, &shell, &texts);
    StartUp {
        command: command.words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        first_prompt,
        starts: plain.len(),
        prompt,
        prompts,
        observing: first(observed).since(first_prompt),
        before_prompt,
        at_prompt,
        texts,
        advice,
    }
}

/// Forgets the lines of functions that their files do not define. zsh counts the lines of a text
/// that `eval` executes on from that of the `eval`.
fn forget_lines_of_evaluated(observed: &mut [Observed]) {
    let mut texts: BTreeMap<Vec<u8>, Option<String>> = BTreeMap::new();
    for frame in observed.iter_mut().flat_map(|observed| &mut observed.activity.frames) {
        let (Some(file), Some(function)) = (&frame.file, &frame.function) else { continue };
        let path = Path::new(OsStr::from_bytes(file));
        let text = texts.entry(file.clone()).or_insert_with(|| read(path).ok());
        let function = String::from_utf8_lossy(function);
        // A function that is loaded at its first call has a file of its name.
        let is_own_file = path.file_stem() == Some(OsStr::new(&*function)) || function.starts_with('(');
        let defines = |line: &str| {
            let line = line.trim_start();
            let rest = line.strip_prefix("function ").map_or(line, str::trim_start).strip_prefix(&*function);
            rest.is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_'))
        };
        if !is_own_file && text.as_ref().is_some_and(|text| !text.lines().any(defines)) {
            frame.line = None;
        }
    }
}

fn find_texts(spent: &Spent, texts: &mut BTreeMap<Place, String>) {
    if let (Some(file), Some(line)) = (&spent.place.file, spent.place.line)
        && let Ok(text) = line_of(Path::new(OsStr::from_bytes(file)), line)
    {
        texts.insert(spent.place.clone(), text);
    }
    spent.inner.iter().for_each(|inner| find_texts(inner, texts));
}

fn read(path: &Path) -> Result<String, String> {
    let found = fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() || found.len() > MAX_BYTES {
        return Err("is not a start-up file".to_owned());
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}

fn line_of(path: &Path, line: u32) -> Result<String, String> {
    let text = read(path)?;
    text.lines().nth(line as usize - 1).map(str::to_owned).ok_or_else(|| "has no such line".to_owned())
}

/// The edits of a file: where it is, its name in a diff, and what to replace.
struct FileEdits {
    path: PathBuf,
    name: Result<String, String>,
    splices: Vec<Splice>,
}

/// Makes a diff of each edit, and returns the edits by file.
fn apply(report: &mut StartUp, directory: &Path) -> Vec<FileEdits> {
    let mut files: Vec<FileEdits> = Vec::new();
    for advice in &mut report.advice {
        match edit(advice, directory) {
            Ok(Some(mut new)) => match files.iter_mut().find(|file| file.path == new.path) {
                Some(file) => file.splices.append(&mut new.splices),
                None => files.push(new),
            },
            Ok(None) => {}
            Err(refusal) => advice.refusal = Some(refusal),
        }
    }
    files
}

fn edit(advice: &mut LineAdvice, directory: &Path) -> Result<Option<FileEdits>, String> {
    let (Some((range, text)), Some(file), Some(line)) = (&advice.cure.edit, &advice.place.file, advice.place.line)
    else {
        return Ok(None);
    };
    if Owner::of(file) != Owner::User {
        return Err("this file belongs to a package".to_owned());
    }
    // Many users keep their files elsewhere, behind symbolic links.
    let path = fs::canonicalize(OsStr::from_bytes(file)).map_err(|error| error.to_string())?;
    let content = read(&path)?;
    if let Some(user) = cures::user_of_sourced(&content, line) {
        return Err(format!("line {user} uses a function that would be defined too late"));
    }
    let start: usize = content.split_inclusive('\n').take(line as usize - 1).map(str::len).sum();
    let splices = vec![Splice {
        range: start + range.start..start + range.end,
        text: text.as_bytes().to_vec(),
        limits: Vec::new(),
    }];
    let name = name_below(&path, directory);
    let shown = name.as_deref().unwrap_or(path.to_str().unwrap_or_default());
    advice.patch = patch::unified(shown, content.as_bytes(), &spliced(content.as_bytes(), &splices))?;
    Ok(Some(FileEdits { path, name, splices }))
}

/// Prints the diff to standard output, and what it leaves out to standard error.
fn print_patch(report: &StartUp, files: &[FileEdits]) -> Result<()> {
    let mut out = io::stdout().lock();
    for advice in &report.advice {
        match &advice.refusal {
            Some(refusal) => output::print_message(&format!("not in the patch: {}: {refusal}", advice.cure.title)),
            None if advice.patch.is_empty() => {
                output::print_message(&format!(
                    "not in the patch: {}: this change needs your decision",
                    advice.cure.title
                ));
            }
            None => output::print_message(&format!("check before you apply it: {}", advice.cure.limits)),
        }
    }
    for file in files {
        let mut splices = file.splices.clone();
        splices.sort_by_key(|splice| splice.range.start);
        splices.dedup();
        let text = read(&file.path).map_err(anyhow::Error::msg)?;
        let diff = file
            .name
            .clone()
            .and_then(|name| patch::unified(&name, text.as_bytes(), &spliced(text.as_bytes(), &splices)));
        match diff {
            Ok(diff) => out.write_all(&diff).context("failed to write the patch")?,
            Err(reason) => output::print_message(&format!("not in the patch: {}: {reason}", file.path.display())),
        }
    }
    Ok(())
}
