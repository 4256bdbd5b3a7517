//! Launches off the critical path get no advice.

use spawnscope_analyze::explain::advice::AdviceList;
use spawnscope_data::event::TaskId;

use crate::builder::{ROOT, Spans};
use crate::serial::{Serial, advices};
use crate::slices::{created, ended};

const COUNT: u64 = 10;

/// Returns the advice on a make that is always busy, and launches sed on other CPUs, two at a time,
/// without ever waiting.
fn advice_on_busy_make() -> AdviceList {
    let mut serial = Serial::with_command("/usr/bin/make", &["make", "-j2"]);
    let spans = Spans { run: 20_000_000, ..Spans::USUAL };
    for number in 0..COUNT {
        let begin = 5_000_000 + number * 15_000_000;
        let sed = serial.builder.launch(ROOT, begin, &spans, Some(("/bin/sed", &["sed", "s/a/b/", "file"])));
        let row = serial.builder.row(sed);
        row.parent_task = Some(TaskId(ROOT.0));
        let (born, gone) = (row.created.unwrap().0, row.zombie.unwrap().0);
        serial.slices.push(created(sed.0, born, spans.queue));
        serial.slices.push(ended(sed.0, born + spans.queue, gone));
    }
    serial.builder.recording.info.cpus = 4;
    serial.run_shell_until(5_000_000 + COUNT * 15_000_000);
    advices(&serial.finish())
}

#[test]
fn launches_off_the_critical_path_get_no_advice() {
    let found = advice_on_busy_make();
    assert!(found.worth.is_empty(), "{found:?}");
}
