//! Jobs of GNU parallel. It always runs a job in a shell, but can pass many arguments to each job.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, time};
use crate::explain::advice::rules::needless_shell::PARALLEL;
use crate::explain::advice::thresholds::MIN_REPETITIONS;
use crate::patterns::shells::{command_of, is_shell};
use crate::predict::whatif::changes::Change;
use spawnscope_data::units;

/// Number of jobs per CPU that keeps all CPUs busy.
const JOBS_PER_CPU: usize = 4;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let by_program = context.grouped_by(|_, launch| {
        let is_job = launch.birth_command.name == PARALLEL && launch.execs.first().and_then(command_of).is_some();
        is_job.then_some(launch.command.name)
    });
    let frequent_groups = by_program.into_iter().filter(|(_, all)| all.len() >= MIN_REPETITIONS);
    frequent_groups.map(|(program, all)| finding(context, program, all)).collect()
}

fn finding(context: &RuleContext<'_, '_>, program: &[u8], all: Vec<u32>) -> Finding {
    let jobs = context.recording.info.cpus as usize * JOBS_PER_CPU;
    let size = (all.len() / jobs.max(1)).max(2);
    let jobs_text = if is_shell(program) { "jobs".to_owned() } else { format!("{} jobs", name(program)) };
    let count = units::count(all.len() as u64);
    let title = format!("GNU parallel starts {count} {jobs_text}, each through its own shell");
    let evidence = format!("{} take {} in all", launches(all.len()), time(context.spent_on(&all)));
    Finding::modelled("gnu-parallel", title, all)
        .evidence(evidence)
        .with_example(context)
        .fix("pass many arguments to each job, if the program takes several files:")
        .fix(format!(
            "  parallel -m PROGRAM   (or -X, which also repeats the text around {{}}; -n{size} sets the number of arguments per job)"
        ))
        .fix("or launch without a shell and without parallel's overhead for each job:")
        .fix("  xargs -P\"$(nproc)\" -n1 PROGRAM")
        .limits("with -m and -X, results and exit statuses are per job, not per argument")
        .predicted_by(Change::Batch(size as u32), format!("--batch=parent=parallel={size}"))
}
