//! Interpreters that are started repeatedly for little work. At each start, python3 reads its
//! library, node compiles its built-in modules, and java loads classes.

use std::collections::BTreeMap;

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, option, time, times};
use crate::explain::advice::thresholds::{MIN_REPETITIONS, longest_frequent_groups, work_time};
use crate::model::launch::{Exec, base_name, is_version_of};
use crate::model::phases::Phase;
use crate::patterns::chains::did_other_work;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;

/// How to recognize an interpreter whose run is mostly start-up, and what to advise.
struct Interpreter {
    /// The program's name without a version.
    prefix: &'static [u8],
    /// If the start-up is not recorded, a run of at most this multiple of the launch cost counts as
    /// mostly start-up. The launch cost adapts the limit to the speed of the machine. On the
    /// development machine, the start of python3 takes about half of its limit, that of perl less.
    max_run_per_cost: f64,
    advice: &'static [&'static str],
}

const INTERPRETERS: [Interpreter; 7] = [
    Interpreter {
        prefix: b"python",
        max_run_per_cost: 25.0,
        advice: &[
            "  run one python3 that loops, or reads the work from standard input",
            "  python3 -X importtime lists the imports and how long each takes",
            "  python3 -S -I ignores site-packages and PYTHON* variables",
        ],
    },
    Interpreter {
        prefix: b"perl",
        max_run_per_cost: 8.0,
        advice: &["  run one perl that takes all files, or reads the work with while (<>)"],
    },
    Interpreter {
        prefix: b"node",
        max_run_per_cost: 60.0,
        advice: &[
            "  run one node that loops, or a server that takes requests",
            "  node --snapshot-blob shortens start-up",
        ],
    },
    Interpreter {
        prefix: b"ruby",
        max_run_per_cost: 60.0,
        advice: &["  run one ruby that loops, as with `ruby -ne`; --disable-gems shortens start-up"],
    },
    Interpreter {
        prefix: b"php",
        max_run_per_cost: 25.0,
        advice: &["  run one php that loops; -n ignores php.ini and its extensions"],
    },
    Interpreter {
        prefix: b"java",
        max_run_per_cost: 90.0,
        advice: &[
            "  run one JVM that loops, or a daemon (as Gradle does)",
            "  -XX:SharedArchiveFile (class data sharing) shortens start-up",
        ],
    },
    Interpreter {
        prefix: b"Rscript",
        max_run_per_cost: 120.0,
        advice: &["  run one R that loops; --vanilla shortens start-up"],
    },
];
/// Maximum batch size. Larger batches would hardly save more.
const MAX_BATCH: usize = 1000;
/// Number of batches per CPU that keeps all CPUs busy, for launches that ran in parallel.
const BATCHES_PER_CPU: usize = 2;
const MAX_FINDINGS: usize = 3;

/// Index in `INTERPRETERS`, the parent's program, the interpreter's name, and the script.
type Start<'a> = (usize, &'a [u8], &'a [u8], Vec<u8>);

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let forest = context.forest();
    let mut starts: BTreeMap<Start<'_>, Vec<u32>> = BTreeMap::new();
    for parent in 0..forest.launches.len() {
        let mut of_parent: BTreeMap<Start<'_>, Vec<u32>> = BTreeMap::new();
        for &index in forest.children(parent) {
            let Some((interpreter, script)) = interpreter_of_short_run(context, index) else {
                continue;
            };
            if !did_other_work(forest, context.timelines(), index as u32) {
                let launch = &forest.launches[index];
                let start = (interpreter, launch.birth_command.name, launch.command.name, script);
                of_parent.entry(start).or_default().push(index as u32);
            }
        }
        // Only launches by the same process can be merged.
        for (start, mut launches) in of_parent.into_iter().filter(|(_, launches)| launches.len() >= MIN_REPETITIONS) {
            starts.entry(start).or_default().append(&mut launches);
        }
    }
    longest_frequent_groups(context, starts, MAX_FINDINGS)
        .into_iter()
        .map(|((interpreter, parent, program, script), mut all)| {
            all.sort_unstable();
            finding(context, &INTERPRETERS[interpreter], (parent, program), &script, &all)
        })
        .collect()
}

/// Returns the index of the interpreter that a launch runs, and the script, if the run is mostly
/// start-up. If the start-up is not recorded, every short run counts as start-up.
fn interpreter_of_short_run(context: &RuleContext<'_, '_>, index: usize) -> Option<(usize, Vec<u8>)> {
    let launch = &context.forest().launches[index];
    let exec = launch.execs.last()?;
    let program = exec.program_name();
    let interpreter = INTERPRETERS.iter().position(|interpreter| is_version_of(program, interpreter.prefix))?;
    let is_start = match launch.start_up.get() {
        Some(start_up) => work_time(context, index)?.since(start_up) <= start_up,
        None => {
            launch.phases.get(Phase::Run)?.0 as f64
                <= launch.launch_cost()?.0 as f64 * INTERPRETERS[interpreter].max_run_per_cost
        }
    };
    is_start.then(|| (interpreter, script_of(exec)))
}

/// Returns the script of an interpreter: a file name, a module, or the option for inline text.
fn script_of(exec: &Exec<'_>) -> Vec<u8> {
    if exec.interpreter().is_some() {
        return base_name(exec.path()).to_vec();
    }
    let mut arguments = exec.arguments().skip(1);
    while let Some(argument) = arguments.next() {
        match argument {
            b"-c" | b"-e" => return argument.to_vec(),
            b"-m" | b"-jar" => return [argument, b" ", arguments.next().unwrap_or_default()].concat(),
            _ if argument.starts_with(b"-") => {}
            _ => return base_name(argument).to_vec(),
        }
    }
    b"-".to_vec()
}

fn finding(
    context: &RuleContext<'_, '_>,
    interpreter: &Interpreter,
    (parent, program): (&[u8], &[u8]),
    script: &[u8],
    all: &[u32],
) -> Finding {
    let size = batch_size(context, all);
    let script_text = match script {
        b"-" => String::new(),
        script if script == program => format!(", a {} script,", String::from_utf8_lossy(interpreter.prefix)),
        script if script.starts_with(b"-") => format!(" {}", name(script)),
        script => format!(" for {}", name(script)),
    };
    let title = format!("{} starts {}{script_text} {}", name(parent), name(program), times(all.len()));
    Finding::modelled("interpreter-start", title, all.to_vec())
        .evidence(evidence(context, all))
        .with_example(context)
        .fix("use one process for all the work, or shorten the start-up:")
        .fix_lines(interpreter.advice.iter().copied())
        .limits(
            "the prediction assumes that the shortest run consists of start-up only; if every run does the same work, less is \
             saved; in one process, the variables and modules of one job remain visible to the next",
        )
        .predicted_by(
            Change::Batch(size as u32),
            format!("{}={size}", option("--batch", program, parent)),
        )
}

fn evidence(context: &RuleContext<'_, '_>, all: &[u32]) -> String {
    let runs = all.iter().filter_map(|index| context.launch(*index).phases.get(Phase::Run));
    let shortest = runs.min().unwrap_or_default();
    let run = context.total_phase(all, Phase::Run);
    format!(
        "{} take {} in all; the shortest run takes {}, the average run {}, mostly for start-up",
        launches(all.len()),
        time(context.spent_on(all)),
        time(shortest),
        time(Nanos(run.0 / all.len().max(1) as u64))
    )
}

/// Returns the batch size: the maximum or, if the launches ran in parallel, a size that leaves work
/// for every CPU.
fn batch_size(context: &RuleContext<'_, '_>, all: &[u32]) -> usize {
    let overlapping = all.windows(2).filter(|pair| {
        let [first, second] = [pair[0], pair[1]].map(|index| context.launch(index).instants);
        first.reaped.get().zip(second.created.get()).is_some_and(|(reaped, created)| created < reaped)
    });
    if overlapping.count() * 2 < all.len() {
        return MAX_BATCH;
    }
    let batches = context.recording.info.usable_cpus() as usize * BATCHES_PER_CPU;
    (all.len() / batches.max(1)).clamp(2, MAX_BATCH)
}
