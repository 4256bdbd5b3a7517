//! Hostile arguments and names: huge, broken over lines, not UTF-8, or aimed at the terminal.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::support::prelude::*;

#[apply(live_test)]
fn a_megabyte_of_arguments_is_recorded_and_cut() {
    // One argument may be 128 KiB long at most (MAX_ARG_STRLEN).
    let arguments = (0..9).map(|_| OsString::from("x".repeat(120_000)));
    let record = Record::new().recorded([path("tiny").into()].into_iter().chain(arguments));
    let launches = launches(&record.file());
    let exec = &launches.root().json()["execs"][0];
    assert_eq!(exec["argv_cut"], true);
    let kept = launches.root().arguments();
    assert!(kept.len() > 1 && kept[1].starts_with("xxxx"), "the first bytes are kept");
    read(&["tree"], &record.file());
}

#[apply(live_test)]
fn arguments_of_any_bytes_are_kept() {
    let tiny = path("tiny");
    let strange =
        [tiny.as_os_str(), "two\nlines".as_ref(), OsStr::from_bytes(b"\xff\xfe!"), "".as_ref(), "end".as_ref()];
    let launches = launches(&Record::new().recorded(strange).file());
    assert_eq!(launches.root().arguments()[1..], ["two\nlines", "\u{fffd}\u{fffd}!", "", "end"]);
    assert_eq!(launches.root().json()["execs"][0]["argv_hex"][2], "fffe21", "nothing is lost");
}
