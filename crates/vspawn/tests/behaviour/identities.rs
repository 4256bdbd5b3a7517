//! Children that become another user, or get another root. These requests need root.

use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;
use vspawn::{Command, Mechanism, Stage};

use crate::support::needs::Need;
use crate::support::state::field;
use crate::support::{Test, expect_error, test};

pub fn tests() -> Vec<Test> {
    let tests = vec![
        test("a_child_changes_user_and_group_and_loses_roots_groups", user),
        test("a_child_has_the_requested_groups", groups),
        test("a_directory_is_entered_with_the_users_rights", directory),
        test("the_parent_death_signal_survives_the_change_of_user", parent_death),
        test("a_child_with_another_root_starts_in_that_root", root),
    ];
    tests.into_iter().map(|test| test.needs(&[Need::Root])).collect()
}

/// Runs `cat` on its own `status` file. Returns its user ids and group ids (real, effective, saved
/// and file system's), and its groups.
fn identity(command: &mut Command) -> [String; 3] {
    let status = String::from_utf8(command.arg("/proc/self/status").output().unwrap().stdout).unwrap();
    ["Uid", "Gid", "Groups"].map(|name| field(&status, name))
}

fn user() {
    let before = identity(&mut Command::new("/bin/cat"));
    for mechanism in [Mechanism::Share, Mechanism::Fork] {
        let found = identity(Command::new("/bin/cat").uid(61234).gid(61235).mechanism(mechanism));
        assert_eq!(found, ["61234\t61234\t61234\t61234", "61235\t61235\t61235\t61235", ""]);
    }
    assert_eq!(identity(&mut Command::new("/bin/cat")), before);
}

fn groups() {
    let found = identity(Command::new("/bin/cat").uid(61234).groups(&[7, 8]));
    assert_eq!(found[2], "7 8");
    assert_eq!(identity(Command::new("/bin/cat").groups(&[9]))[2], "9");
}

fn directory() {
    let directory = TempDir::new().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = Command::new("/bin/true");
    assert!(command.current_dir(directory.path()).status().unwrap().success());
    let error = expect_error(command.uid(61234).spawn(), Stage::Chdir, libc::EACCES);
    assert_eq!(error.action(), format!("chdir to {}", directory.path().display()));
}

fn parent_death() {
    let spawned = std::thread::spawn(|| {
        let mut command = Command::new("/bin/sleep");
        command.arg("1000").uid(61234).parent_death_signal(libc::SIGTERM).spawn().unwrap()
    });
    let status = spawned.join().unwrap().wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGTERM));
}

fn root() {
    let directory = TempDir::new().unwrap();
    std::fs::create_dir(directory.path().join("inner")).unwrap();
    // The directory is looked up in the new root.
    let mut command = Command::new("/program");
    expect_error(command.chroot(directory.path()).current_dir("/inner").spawn(), Stage::Exec, libc::ENOENT);
    expect_error(command.current_dir("/tmp").spawn(), Stage::Chdir, libc::ENOENT);
    let error = Command::new("/program").chroot("/nowhere").spawn().unwrap_err();
    assert_eq!((error.stage(), error.action()), (Stage::Chroot, "chroot to /nowhere"));
    // The child does not keep the parent's working directory either. Otherwise, the relative paths
    // below would start there.
    std::fs::copy("/bin/true", directory.path().join("here")).unwrap();
    std::env::set_current_dir(directory.path().join("inner")).unwrap();
    expect_error(Command::new("../here").chroot(directory.path().join("inner")).spawn(), Stage::Exec, libc::ENOENT);
    assert!(Command::new("bin/true").chroot("/").status().unwrap().success());
}
