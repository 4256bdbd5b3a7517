//! Launches off the critical path are reported as not worth fixing.

use spawnscope_analyze::explain::advice::{AdviceList, Rejection};
use spawnscope_data::event::{Nanos, TaskId};

use crate::builder::{ROOT, Spans};
use crate::serial::{Serial, advices};
use crate::slices::{created, ended};

const COUNT: u64 = 10;

/// Returns the advice on a make that is always busy, and launches sed on other CPUs, two at a time, without ever waiting.
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
fn launches_off_the_critical_path_are_not_worth_fixing() {
    let found = advice_on_busy_make();
    assert!(found.worth.is_empty(), "{found:?}");
    let (doubt, advice) = found.not_worth.iter().find(|(_, advice)| advice.finding.rule == "off-path").unwrap();
    assert_eq!(*doubt, Rejection::OffPath);
    assert_eq!(advice.finding.launches.len() as u64, COUNT);
    let title = &advice.finding.title;
    assert!(title.starts_with("10 launches of sed by make take 210 ms off"), "{title}");
    assert!(advice.saving[0] < Nanos(5_000_000), "{:?}", advice.saving);
}

#[test]
fn launches_one_after_the_other_are_on_the_path() {
    let mut serial = Serial::new();
    for _ in 0..COUNT {
        serial.launch(&Spans::USUAL, Some(("/bin/ls", &["ls"])));
    }
    let found = advices(&serial.finish());
    let findings = found.worth.iter().chain(found.not_worth.iter().map(|(_, advice)| advice));
    assert_eq!(findings.filter(|advice| advice.finding.rule == "off-path").count(), 0);
}
