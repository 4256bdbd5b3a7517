//! The descriptors of a child: swaps, cycles, chains, and random maps are compared with the
//! expected result. All others are closed, even if the kernel refuses the fast calls.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use libc::{EINVAL, ENOMEM, ENOSYS, EPERM};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tempfile::TempDir;
use vspawn::{Command, Mechanism, Stage, Stdio};

use crate::support::needs::Need;
use crate::support::seccomp::{call, refuse};
use crate::support::state::open_files;
use crate::support::{Test, expect_error, helper, kernel, test};

pub fn tests() -> Vec<Test> {
    let mut tests = vec![
        with_helper("swaps_cycles_and_chains_of_descriptors_are_placed_correctly", shapes),
        with_helper("a_source_may_be_a_pipes_target", source_is_a_pipes_target),
        test("a_closed_source_number_is_not_reused_by_the_spawn_itself", closed_number),
        with_helper("high_target_numbers_work", far_above),
        with_helper("a_swap_up_to_the_limit_of_open_files_uses_the_gaps", swap_at_the_limit),
        with_helper("random_maps_are_placed_correctly", random),
        with_helper("others_are_closed_with_a_source_too_high_to_share_the_table", high_source),
        with_helper("others_are_closed_under_a_low_limit_without_close_range", low_limit_without_close_range),
        with_helper("others_are_closed_in_another_root_without_close_range", other_root).needs(&[Need::Root]),
        with_helper("without_close_others_inheritable_descriptors_are_inherited", inherited),
        test("a_target_above_the_limit_is_reported", above_the_limit),
    ];
    let closers: [(&str, &'static [(u32, i32)]); 5] = [
        ("close_range", &[]),
        ("unshare_refused_with_einval", &[(libc::CLOSE_RANGE_UNSHARE, EINVAL)]),
        ("unshare_refused_with_enomem", &[(libc::CLOSE_RANGE_UNSHARE, ENOMEM)]),
        ("close_range_refused_with_enosys", &[(libc::CLOSE_RANGE_UNSHARE, ENOSYS), (0, ENOSYS)]),
        ("close_range_refused_with_eperm", &[(libc::CLOSE_RANGE_UNSHARE, EPERM), (0, EPERM)]),
    ];
    for (how, refused) in closers {
        let name = format!("close_others_keeps_only_requested_descriptors_with_{how}");
        tests.push(test(name, move || others_closed(refused)).needs(&[Need::Cc]));
    }
    tests
}

fn with_helper(name: &str, run: fn()) -> Test {
    test(name, run).needs(&[Need::Cc])
}

/// Creates `count` files with known names, at the lowest free numbers from `least` on.
fn files(directory: &Path, count: usize, least: i32) -> Vec<OwnedFd> {
    let files = (0..count).map(|index| File::create(directory.join(format!("file{index}"))).unwrap());
    files.map(|file| kernel::copy_above(file.as_raw_fd(), least).unwrap()).collect()
}

fn path_of(fd: i32) -> String {
    std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap().display().to_string()
}

/// Gives the child exactly the descriptor `source`, which the test keeps. The caller must forget
/// the command.
fn lend(command: &mut Command, target: i32, source: i32) {
    // SAFETY: a second owner of the number, which never closes it, because the command is
    // forgotten.
    command.fd(target, unsafe { OwnedFd::from_raw_fd(source) });
}

/// Checks that the child has the descriptors of the map and the standard streams, and no others.
fn check(map: &[(i32, i32)], close_others: bool, mechanism: Mechanism, directory: &Path) {
    let sources: BTreeMap<i32, String> = map.iter().map(|(source, _)| (*source, path_of(*source))).collect();
    let mut expected: BTreeMap<i32, String> = [0, 1, 2].map(|fd| (fd, path_of(fd))).into();
    expected.extend(map.iter().map(|(source, target)| (*target, sources[source].clone())));
    let mut command = Command::new(helper::path());
    for (source, target) in map {
        lend(&mut command, *target, *source);
    }
    command.close_others(close_others).mechanism(mechanism);
    let found = helper::run_and_list_descriptors(&mut command, &directory.join("report"));
    // The test still owns the sources.
    std::mem::forget(command);
    assert_eq!(found, expected, "{map:?}");
}

fn check_all(map: &[(i32, i32)], directory: &Path) {
    let before = open_files();
    for close_others in [false, true] {
        check(map, close_others, Mechanism::Share, directory);
    }
    check(map, true, Mechanism::Fork, directory);
    assert_eq!(before, open_files());
}

fn shapes() {
    let directory = TempDir::new().unwrap();
    let files = files(directory.path(), 4, 10);
    assert_eq!(files.iter().map(AsRawFd::as_raw_fd).collect::<Vec<_>>(), [10, 11, 12, 13]);
    let shapes: &[&[(i32, i32)]] = &[
        &[],
        &[(10, 10)],
        &[(10, 11), (11, 10)],
        &[(10, 11), (11, 12), (12, 10)],
        &[(10, 11), (11, 12), (12, 13), (13, 14)],
        &[(13, 12), (12, 11), (11, 10), (10, 9)],
        &[(10, 3), (10, 4), (10, 5), (10, 10), (10, 11)],
        &[(10, 0), (11, 1), (12, 2)],
        &[(0, 1), (1, 0), (2, 2)],
        &[(10, 11), (11, 10), (12, 12), (13, 3), (13, 4)],
    ];
    for shape in shapes {
        check_all(shape, directory.path());
    }
}

fn source_is_a_pipes_target() {
    let directory = TempDir::new().unwrap();
    let file = File::create(directory.path().join("file")).unwrap();
    let kept = kernel::copy_above(1, 60).unwrap();
    let (log, wanted) = (path_of(1), path_of(file.as_raw_fd()));
    kernel::copy_to_inheritable(file.as_raw_fd(), 1);
    // In the parent, 1 is the file. In the child, 1 is a pipe, and 5 is the parent's 1.
    for close_others in [false, true] {
        let mut command = Command::new(helper::path());
        lend(&mut command, 5, 1);
        command.stdout(Stdio::piped()).stdin(Stdio::piped()).close_others(close_others);
        let found = helper::run_and_list_descriptors(&mut command, &directory.path().join("report"));
        std::mem::forget(command);
        assert_eq!(found[&5], wanted);
        assert!(found[&1].starts_with("pipe:") && found[&0].starts_with("pipe:") && found[&0] != found[&1]);
        assert_eq!(found.len(), 4, "{found:?}");
    }
    kernel::copy_to_inheritable(kept.as_raw_fd(), 1);
    drop(kept);
    assert_eq!(path_of(1), log);
}

fn far_above() {
    let directory = TempDir::new().unwrap();
    kernel::set_soft_limit(libc::RLIMIT_NOFILE, 5000);
    let _files = files(directory.path(), 2, 10);
    check_all(&[(10, 4000), (11, 1023)], directory.path());
    check_all(&[(10, 1024), (11, 4999)], directory.path());
}

/// No number above the targets is free for sources that must be copied away first.
fn swap_at_the_limit() {
    let directory = TempDir::new().unwrap();
    kernel::set_soft_limit(libc::RLIMIT_NOFILE, 64);
    let _files = files(directory.path(), 3, 61);
    check_all(&[(61, 62), (62, 63), (63, 61)], directory.path());
    check_all(&[(61, 62), (62, 63), (63, 61), (61, 3), (61, 5)], directory.path());
}

fn above_the_limit() {
    kernel::set_soft_limit(libc::RLIMIT_NOFILE, 64);
    let source = kernel::copy_to(0, 20);
    let error = expect_error(Command::new("/bin/true").fd(64, source).spawn(), Stage::Dup, libc::EBADF);
    assert_eq!(error.action(), "dup 20 to 64");
}

fn random() {
    let directory = TempDir::new().unwrap();
    let _files = files(directory.path(), 8, 10);
    let target = prop_oneof![4 => 0..22i32, 1 => 900..1100i32];
    let maps = proptest::collection::btree_map(target, 10..18i32, 0..14);
    let mut runner = TestRunner::new(Config { cases: 100, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&(maps, any::<bool>(), any::<bool>()), |(map, close_others, fork)| {
        let map: Vec<(i32, i32)> = map.into_iter().map(|(target, source)| (source, target)).collect();
        let mechanism = if fork { Mechanism::Fork } else { Mechanism::Share };
        check(&map, close_others, mechanism, directory.path());
        Ok(())
    });
    outcome.unwrap();
}

/// Opens inheritable files between the requested descriptors and above them. Only the requested
/// ones may be open in the child.
fn others_closed(refused: &[(u32, i32)]) {
    let directory = TempDir::new().unwrap();
    let _files = files(directory.path(), 3, 10);
    let inheritable = open_inheritable(&[5, 6, 20, 21, 300, 1500, 3000]);
    let rules: Vec<_> =
        refused.iter().map(|(flags, errno)| (call(libc::SYS_close_range).with(2, *flags), *errno)).collect();
    refuse(&rules);
    for mechanism in [Mechanism::Share, Mechanism::Fork] {
        for map in [&[][..], &[(10, 12), (12, 10)], &[(11, 5)], &[(10, 7), (11, 22), (12, 1000)]] {
            check(map, true, mechanism, directory.path());
        }
    }
    // A detached child has its own table from the start.
    let report = directory.path().join("report");
    let mut command = Command::new(helper::path());
    let mut child = command.arg(&report).close_others(true).spawn_nowait().unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(std::fs::read_to_string(report).unwrap().lines().count(), 3);
    inheritable.into_iter().for_each(kernel::close);
}

fn open_inheritable(numbers: &[i32]) -> Vec<i32> {
    for number in numbers {
        kernel::copy_to_inheritable(0, *number);
    }
    numbers.to_vec()
}

fn high_source() {
    let directory = TempDir::new().unwrap();
    let inheritable = open_inheritable(&[5, 6, 700, 1500, 3000]);
    let _files = files(directory.path(), 2, 2000);
    for map in [&[(2000, 3)][..], &[(2001, 2000), (2000, 2001)], &[(2000, 0), (2001, 900)]] {
        check(map, true, Mechanism::Share, directory.path());
    }
    inheritable.into_iter().for_each(kernel::close);
}

/// Without close_range, a listing shows what to close. It needs a descriptor itself.
fn low_limit_without_close_range() {
    let inheritable = open_inheritable(&[5, 6, 20]);
    refuse(&[(call(libc::SYS_close_range), ENOSYS)]);
    let mut plain = Command::new("/bin/true");
    plain.close_others(true).resource_limit(libc::RLIMIT_NOFILE, 3, 3).stdin(Stdio::null());
    // With this limit, a dynamic program cannot open its library, but it was started.
    assert_eq!(plain.status().unwrap().code(), Some(127));
    let mut low = Command::new("/bin/true");
    assert!(low.close_others(true).resource_limit(libc::RLIMIT_NOFILE, 4, 4).status().unwrap().success());
    inheritable.into_iter().for_each(kernel::close);
}

fn other_root() {
    let directory = TempDir::new().unwrap();
    refuse(&[(call(libc::SYS_close_range), ENOSYS)]);
    // The new root contains neither /proc nor the program. The exec fails, so the closing worked:
    // it precedes the chroot.
    expect_error(
        Command::new("/program").close_others(true).chroot(directory.path()).spawn(),
        Stage::Exec,
        libc::ENOENT,
    );
}

fn inherited() {
    let directory = TempDir::new().unwrap();
    let inheritable = open_inheritable(&[5, 20]);
    let _closed_on_exec = files(directory.path(), 1, 30);
    let found = helper::run_and_list_descriptors(&mut Command::new(helper::path()), &directory.path().join("report"));
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 5, 20]);
    inheritable.into_iter().for_each(kernel::close);
}

/// Gives a child a number that is not open. Without a check, the next pipe or the pidfd could get
/// this number, one of the lowest free ones.
fn closed_number() {
    for distance in 0..4 {
        let free = File::open("/dev/null").unwrap().as_raw_fd() + distance;
        let mut command = Command::new("/bin/true");
        command.fd_number(5, free).stdin(Stdio::piped()).close_others(true);
        let error = expect_error(command.spawn(), Stage::Dup, libc::EBADF);
        assert_eq!(error.action(), format!("dup {free} to 5"));
    }
}
