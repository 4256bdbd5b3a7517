//! The files that spawnscope creates under sudo belong to the user, and no link or renamed file of
//! the user makes it touch files of root.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::unistd::{Gid, Uid};
use spawnscope::owner::Owner;
use tempfile::TempDir;

use super::identities::run_below_in;

use crate::support::prelude::*;

const NOBODY: u32 = 65534;

/// A directory of an unprivileged user, and a directory of root with a private file.
struct Fixture {
    user: TempDir,
    root: TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        let [user, root] = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
        chown(user.path(), Some(NOBODY), Some(NOBODY)).expect("chown");
        fs::write(root.path().join("secret"), "").expect("a file");
        fs::set_permissions(root.path().join("secret"), fs::Permissions::from_mode(0o600)).expect("chmod");
        Fixture { user, root }
    }

    fn user(&self, name: &str) -> PathBuf {
        self.user.path().join(name)
    }

    fn root(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn link(&self, name: &str, target: &str) {
        symlink(self.root(target), self.user(name)).expect("a link");
    }

    /// Runs spawnscope in the user's directory, as sudo does.
    fn sudo(&self, arguments: &str) -> Finished {
        run_below_in(self.user.path(), "sudo", arguments)
    }

    /// Checks that root's directory has no new file, and that its file still has its owner, its
    /// mode and no content.
    #[track_caller]
    fn assert_root_is_untouched(&self) {
        let entries = fs::read_dir(self.root.path()).expect("a directory");
        let names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["secret"]);
        let secret = fs::metadata(self.root("secret")).expect("root's file");
        assert_eq!((secret.uid(), secret.mode() & 0o777, secret.len()), (0, 0o600, 0));
    }
}

#[track_caller]
fn assert_belongs_to_nobody(path: &Path) {
    let found = fs::symlink_metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let found = (found.uid(), found.gid(), found.mode() & 0o777);
    assert_eq!(found, (NOBODY, NOBODY, 0o600), "{}", path.display());
}

#[apply(live_test)]
#[needs(Setpriv)]
fn a_link_in_place_of_a_recording_is_refused() {
    for target in ["new", "secret"] {
        let fixture = Fixture::new();
        fixture.link("spawnscope.db", target);
        for parent in ["sudo", "shell"] {
            let finished = run_below_in(fixture.user.path(), parent, "record -q -- id").expect_code(125);
            finished.expect_errors(["is a symbolic link"]);
            assert_eq!(finished.output(), "", "the command does not run");
            fixture.assert_root_is_untouched();
        }
    }
}

#[apply(live_test)]
#[needs(Setpriv)]
fn links_beside_a_recording_are_not_followed() {
    let fixture = Fixture::new();
    fixture.sudo("record -q -- true").expect_code(0);
    fixture.link("spawnscope.db.old", "new");
    let finished = fixture.sudo("record -q -- true").expect_code(125);
    finished.expect_errors(["spawnscope.db.old is a symbolic link"]);
    fs::remove_file(fixture.user("spawnscope.db.old")).expect("the link goes");
    for suffix in ["-journal", "-wal", "-shm"] {
        fixture.link(&format!("spawnscope.db{suffix}"), "new");
        fixture.link(&format!("spawnscope.db.old{suffix}"), "secret");
    }
    fixture.sudo("record -q -- true").expect_code(0);
    fixture.assert_root_is_untouched();
    assert_belongs_to_nobody(&fixture.user("spawnscope.db.old"));
}

/// Swaps the recording for a link to root's file, again and again, while recordings are made. One
/// recording would rarely meet the moment between a check and its use.
#[apply(live_test)]
#[needs(Setpriv)]
fn a_recording_that_is_swapped_for_a_link_changes_no_file_of_root() {
    let fixture = Fixture::new();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let nobody =
                Owner { uid: Uid::from_raw(NOBODY), gid: Gid::from_raw(NOBODY), groups: vec![Gid::from_raw(NOBODY)] };
            let _acting = nobody.act().expect("the ids of nobody");
            let [link, file] = ["link", "spawnscope.db"].map(|name| fixture.user(name));
            while !is_over.load(Ordering::Relaxed) {
                let _ = symlink(fixture.root("secret"), &link);
                let _ = fs::rename(&link, &file);
                let _ = fs::remove_file(&file);
            }
        });
        for _ in 0..10 {
            // Whether `record` succeeds depends on when the file was swapped.
            let code = fixture.sudo("record -q -- true").code();
            assert!(code == 0 || code == 125, "{code}");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    fixture.assert_root_is_untouched();
}

#[apply(live_test)]
#[needs(Setpriv)]
fn all_files_for_the_caller_of_sudo_are_created_as_that_user() {
    let fixture = Fixture::new();
    fixture.sudo("record -q -- true").expect_code(0);
    let listed = fixture.sudo("record -q -- stat -c '%n %u %g %a' spawnscope.db spawnscope.db-wal spawnscope.db-shm");
    let expected: Vec<_> =
        ["", "-wal", "-shm"].map(|suffix| format!("spawnscope.db{suffix} {NOBODY} {NOBODY} 600")).into();
    let output = listed.output();
    assert_eq!(output.lines().collect::<Vec<_>>(), expected, "{}", listed.errors());
    for name in ["spawnscope.db", "spawnscope.db.old"] {
        assert_belongs_to_nobody(&fixture.user(name));
    }
    let refused = fixture.sudo(&format!("record -q -o {} -- id", fixture.root("new").display()));
    let refused = refused.expect_code(125);
    refused.expect_errors(["as user 65534"]);
    fixture.assert_root_is_untouched();
}

#[apply(live_test)]
#[needs(Setpriv)]
fn only_the_writing_thread_acts_as_the_user() {
    let fixture = Fixture::new();
    let script = "record -q -- sh -c 'cd /proc/$PPID/task && grep -h -E \"^(Name|Uid|CapEff)\" */status'";
    let finished = fixture.sudo(script).expect_code(0);
    let output = finished.output();
    let threads: Vec<&str> = output.split("Name:").skip(1).collect();
    assert!(threads.len() > 1, "{output}");
    for thread in threads {
        let words: Vec<&str> = thread.split_whitespace().collect();
        let is_writer = words[0] == "recorder";
        let file_uid = if is_writer { "65534" } else { "0" };
        assert_eq!(words[1..6], ["Uid:", "0", "0", "0", file_uid], "{thread}");
        let rights = u64::from_str_radix(words[7], 16).expect("rights");
        // CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
        assert_eq!(rights & 0b1111 == 0, is_writer, "{thread}");
    }
}

#[apply(live_test)]
#[needs(Setpriv)]
fn exports_and_flame_graphs_belong_to_the_user_and_are_private() {
    let fixture = Fixture::new();
    fixture.sudo("record -q -- true").expect_code(0);
    for (verb, name) in [
        ("export --format ndjson", "a.ndjson"),
        ("export --format perfetto", "a.trace"),
        ("flame", "a.svg"),
        ("flame --folded", "a.folded"),
        ("bench --quick --seconds 0.1 open-fds", "a.html"),
    ] {
        fixture.sudo(&format!("{verb} -o {name}")).expect_code(0);
        assert_belongs_to_nobody(&fixture.user(name));
        let path = fixture.root("new");
        let refused = fixture.sudo(&format!("{verb} -o {}", path.display())).expect_code(125);
        refused.expect_errors(["as nobody, who called sudo"]);
        fixture.assert_root_is_untouched();
    }
    fs::set_permissions(fixture.user("a.svg"), fs::Permissions::from_mode(0o644)).expect("chmod");
    fixture.sudo("flame -o a.svg").expect_code(0);
    let picture = fs::metadata(fixture.user("a.svg")).expect("a picture");
    assert_eq!(picture.mode() & 0o777, 0o644);
    for stream in ["/dev/stdout", "/dev/fd/1", "-"] {
        let folded = fixture.sudo(&format!("flame --folded -o {stream}")).expect_code(0);
        assert!(folded.output().contains("true"), "{stream}: {}", folded.output());
    }
    fixture.sudo("export --format ndjson -o /dev/null").expect_code(0);
    // If sudo did not start it, spawnscope creates files as root.
    run_below_in(fixture.user.path(), "shell", "flame -o b.svg").expect_code(0);
    let own = fs::metadata(fixture.user("b.svg")).expect("a picture");
    assert_eq!((own.uid(), own.mode() & 0o777), (0, 0o600));
}

#[apply(live_test)]
#[needs(Setpriv)]
fn a_link_in_place_of_an_output_is_refused() {
    let fixture = Fixture::new();
    fixture.sudo("record -q -- true").expect_code(0);
    for (name, target) in [("link", "secret"), ("dangling", "new")] {
        fixture.link(name, target);
        let bench = "bench --quick --seconds 0.1 open-fds";
        for verb in ["export --format ndjson", "flame", bench] {
            for parent in ["sudo", "shell"] {
                let finished = run_below_in(fixture.user.path(), parent, &format!("{verb} -o {name}")).expect_code(125);
                let errors = finished.errors();
                assert!(errors.contains("is a symbolic link"), "{verb}: {errors}");
                fixture.assert_root_is_untouched();
            }
        }
    }
}
