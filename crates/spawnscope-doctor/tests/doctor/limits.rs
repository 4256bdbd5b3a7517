//! Tests of the check `open-files`.

use spawnscope_data::event::Nanos;
use spawnscope_doctor::Measured;

use crate::tree::{Tree, expect_note_with, expect_nothing, expect_problem, usual_measurements};

fn with_file_limit(limit: &str) -> Tree {
    let heading = "Limit                     Soft Limit           Hard Limit           Units";
    let row = format!("Max open files            {limit}                 1048576              files");
    Tree::new().file("proc/self/limits", format!("{heading}\n{row}\n"))
}

#[test]
fn a_huge_limit_on_open_files_is_reported_with_the_time_of_a_loop() {
    let finding =
        expect_problem("open-files", &with_file_limit("1048576").machine(), &["1,048,576", "ulimit -S -n 1024"]);
    assert_eq!(finding.effect.unwrap().span, Nanos(104_857_600));
    let quick = Measured { system_call: Some(Nanos(50)), ..usual_measurements() };
    expect_note_with("open-files", &with_file_limit("131072").machine(), &quick, &["131,072"]);
    expect_problem("open-files", &with_file_limit("unlimited").machine(), &["4,294,967,295"]);
    expect_nothing("open-files", &with_file_limit("65536").machine(), &usual_measurements());
}
