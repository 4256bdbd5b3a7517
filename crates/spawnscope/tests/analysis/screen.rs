//! The first screen: every program that its text names has a row, whatever the number of lines.

use spawnscope::present::{summary, text};

use crate::prelude::*;
use crate::printed::report_with_causes;

/// Returns the report on a script that launches dirname 40 times at one line, and 30 other programs
/// once. The advice names bash, which is the last of all programs.
fn report_on_many_programs() -> Report {
    let mut serial = Serial::new();
    for _ in 0..40 {
        let argv = ["dirname", "/a/b"];
        let child = serial.launch_waiting(&Spans::USUAL, Some(("/usr/bin/dirname", &argv)), READ);
        let line = serial.builder.line(Language::Bash, "build.sh", 3, "");
        serial.builder.set_call_chain(child, &[line]);
    }
    for number in 0..30 {
        let name = format!("p{number}");
        serial.launch(&Spans::USUAL, Some((&format!("/bin/{name}"), &[&name])));
    }
    report_with_causes(&serial.finish(), GroupBy::Command)
}

/// Returns the screen above the table, and the rows of the table.
fn screen(report: &Report, width: usize, height: Option<usize>) -> (String, Vec<String>) {
    let screen = plain(&summary::render(report, width, height, None));
    if let Some(height) = height {
        assert!(screen.lines().count() < height, "no line is left for the prompt:\n{screen}");
    }
    let is_command = |line: &&str| line.contains("spawnscope ");
    let mut lines = screen.lines().filter(|line| !is_command(line));
    assert!(lines.all(|line| text::width(line) <= width), "{screen}");
    let (above, table) = screen.split_once("\n  program ").unwrap();
    let rows = table.lines().skip(1).map_while(|line| line.strip_prefix("  ")).map(str::to_owned);
    (above.to_owned(), rows.collect())
}

#[test]
fn each_program_that_the_text_names_has_a_row() {
    let found = report_on_many_programs();
    for (width, height) in [(80, Some(24)), (120, Some(24)), (80, Some(50)), (80, None)] {
        let (above, rows) = screen(&found, width, height);
        assert_contains(&above, ["Fix first  dirname, 40 x at build.sh:3", "bash launches dirname"]);
        for named in ["dirname", "bash"] {
            assert!(rows.iter().any(|row| row.starts_with(&format!("{named} "))), "{named}: {rows:#?}");
        }
        assert!(rows.iter().any(|row| row.starts_with("... ") && row.ends_with(" more: report --full")), "{rows:#?}");
    }
}

#[test]
fn a_recipe_has_the_old_code_and_the_new() {
    let found = report_on_many_programs();
    let above = unwrapped(&screen(&found, 80, None).0);
    assert_contains(
        &above,
        ["-> do the work in the shell: $(dirname \"$p\") -> ${p%/*} (40 times) caveat: for /name,"],
    );
}

#[test]
fn shortened_texts_keep_what_to_write() {
    let found = report_on_many_programs();
    for height in [Some(20), Some(22), Some(24), Some(30), None] {
        let above = unwrapped(&screen(&found, 80, height).0);
        assert_contains(&above, ["-> do the work in the shell: $(dirname \"$p\") -> ${p%/*}"]);
    }
}

#[test]
fn more_lines_show_more_rows() {
    let found = report_on_many_programs();
    let rows = [Some(24), Some(50), None].map(|height| screen(&found, 80, height).1.len());
    assert!(rows[0] < rows[1] && rows[1] == rows[2], "{rows:?}");
}

#[test]
fn a_narrow_screen_keeps_the_names_and_what_is_saved_without_them() {
    let mut report = report_on_many_programs();
    let (above, rows) = screen(&report, 40, Some(24));
    assert_contains(&above, ["Fix first  dirname, 40 x at"]);
    assert!(rows[0].starts_with("dirname") && rows[0].ends_with(" %"), "{rows:#?}");
    report.advices.together = Some([2_000_000, 1_000_000, 3_000_000].map(Nanos));
    let (above, _) = screen(&report, 60, None);
    assert!(above.lines().any(|line| line.contains("Together ") && line.contains(" 2.00 ms")), "{above}");
}

#[test]
fn savings_together_are_likely_if_one_of_them_is_a_maximum() {
    let mut report = report_on_many_programs();
    report.advices.together = Some([2_000_000, 1_000_000, 3_000_000].map(Nanos));
    for (low, expected) in [(1, "Together save "), (0, "Together likely save ")] {
        report.advices.worth[0].saving[1] = Nanos(low);
        let above = unwrapped(&screen(&report, 80, None).0);
        assert!(above.contains(expected) && above.contains(" %, 2.00 ms (1.00 to 3.00)"), "{above}");
    }
}

#[test]
fn without_any_fix_the_screen_says_so() {
    let mut report = report_on_many_programs();
    report.advices.together = None;
    report.advices.worth.clear();
    assert_contains(&screen(&report, 80, None).0, ["No fix found"]);
}
