//! Builds with steps that isolate or trace their own processes: the results are the same as without
//! the recorder, and nothing hangs.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::recording::launches;
use crate::support::run::{Finished, Record, run};
use crate::support::workloads::script;
use crate::support::{apply, live_test};

/// The results of a build: its exit status, its sorted output, and its files with their contents.
#[derive(Debug, PartialEq)]
struct BuildResult {
    code: i32,
    output: Vec<String>,
    files: Vec<(String, String)>,
}

impl BuildResult {
    fn read(finished: &Finished, directory: &Path) -> BuildResult {
        let mut output: Vec<String> = finished.output().lines().map(str::to_owned).collect();
        output.sort_unstable();
        let mut files: Vec<(String, String)> = fs::read_dir(directory)
            .expect("the directory")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "out"))
            .map(|path| {
                let text = fs::read_to_string(&path).expect("a result");
                (path.file_name().expect("a name").to_string_lossy().into_owned(), text)
            })
            .collect();
        files.sort_unstable();
        BuildResult { code: finished.code(), output, files }
    }
}

/// Runs a build in two directories with these files, once without and once with the recorder.
/// Compares the results, and returns the recording.
#[track_caller]
fn assert_builds_the_same(files: &[(&str, &str)], command: &[&str]) -> Record {
    let (plain, recorded) = (directory_with(files), directory_with(files));
    let expected = run(Command::new(command[0]).args(&command[1..]).current_dir(plain.path()));
    let record = Record::new().flags(&["-q"]);
    let found = run(record.command(command).current_dir(recorded.path()));
    let results = (BuildResult::read(&expected, plain.path()), BuildResult::read(&found, recorded.path()));
    assert_eq!(results.0, results.1, "{}", found.errors());
    assert!(!results.0.files.is_empty(), "the build has a result");
    record
}

fn directory_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in files {
        fs::write(directory.path().join(name), text).expect("a file");
    }
    directory
}

#[apply(live_test)]
#[needs(Ninja)]
fn a_build_by_ninja_is_the_same() {
    let mut build = "rule step\n  command = cat /proc/self/comm $in > $out && test $i != 9\nrule join\n  command = cat $in | sort > $out\n".to_owned();
    for step in 0..40 {
        build.push_str(&format!("build {step}.out: step build.ninja\n  i = {}\n", step % 9));
    }
    let all: Vec<String> = (0..40).map(|step| format!("{step}.out")).collect();
    build.push_str(&format!("build all.out: join {}\n", all.join(" ")));
    let record = assert_builds_the_same(&[("build.ninja", &build)], &["ninja", "-j4", "--quiet"]);
    let all = launches(&record.file());
    assert_eq!(all.all(|launch| launch.command() == "sort").len(), 1);
    // 40 steps, and one that joins them.
    assert_eq!(all.all(|launch| launch.command() == "cat").len(), 41);
}

#[apply(live_test)]
fn a_build_by_make_that_fails_in_one_step_is_the_same() {
    let makefile = "all: $(patsubst %,%.out,1 2 3 4 5 6 7 8 9) bad.out\n%.out:\n\t@echo $* $(shell echo of a shell) | tr a-z A-Z > $@\nbad.out:\n\t@echo bad; exit 7\n";
    assert_builds_the_same(&[("Makefile", makefile)], &["make", "-j3", "-k", "--no-print-directory"]);
}

/// As in Bazel's linux-sandbox, each step is process 1 or 2 of namespaces of its own, with its own
/// mounts and no network.
#[apply(live_test)]
#[needs(PidNs, MountNs)]
fn steps_in_namespaces_of_their_own_are_the_same() {
    let makefile = "\
SANDBOX = unshare --user --map-root-user --mount --pid --fork --kill-child --mount-proc --net --ipc --uts
all: $(patsubst %,%.out,1 2 3 4 5 6)
%.out:
\t@$(SANDBOX) sh -c 'mount -t tmpfs none /mnt && echo $$$$ > /mnt/pid && (cat /mnt/pid; ls /proc/self/task | wc -l; grep -c : /proc/net/dev; ps -e | wc -l) > $@; sh -c \"exit $*\"; echo $* $$?'
\t@! $(SANDBOX) sh -c 'exit 9'
";
    let record = assert_builds_the_same(&[("Makefile", makefile)], &["make", "-j2", "--no-print-directory"]);
    let all = launches(&record.file());
    assert_eq!(all.all(|launch| launch.command() == "ps").len(), 6);
}

/// strace seizes the process that it starts; the child of gdb asks to be traced.
#[apply(live_test)]
#[needs(Strace, Gdb)]
fn steps_under_strace_and_gdb_are_the_same() {
    let makefile = "\
all: s.out g.out
s.out:
\t@strace -f -qq -e trace=exit_group -e signal=none -o log sh -c 'sh -c \"exit 3\"; exit 4'; echo strace $$?
\t@sed 's/^[0-9]* *//' log | sort > $@
g.out:
\t@gdb -nx -batch -ex 'set startup-with-shell off' -ex run -ex 'info program' --args sh -c 'exit 5' 2>&1 \\
\t | sed -n 's/.*exited with code/code/p' > $@
";
    let record = assert_builds_the_same(&[("Makefile", makefile)], &["make", "-j2", "--no-print-directory"]);
    let all = launches(&record.file());
    assert_eq!(all.all(|launch| launch.command() == "sed").len(), 2);
}

/// A running process that is recorded can be traced by a program that is recorded.
#[apply(live_test)]
#[needs(Strace, Gdb)]
fn programs_attach_to_recorded_processes() {
    let record = Record::new();
    let finished = record.run(["sh".into(), script("attaches.sh")]).expect_code(0);
    assert_eq!(finished.output(), "strace 130\n0\nstrace -f 4\n", "{}", finished.errors());
    assert!(finished.message().contains("from now on it is not recorded"), "{}", finished.errors());
}

/// The name of the program that seizes its child is not that of a known tracer. The build compiles
/// the program.
#[apply(live_test)]
#[needs(Cc)]
fn a_step_that_seizes_its_own_child_is_the_same() {
    let program = "\
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    int go[2], status;
    char byte;
    if (pipe(go) == -1)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        (void)!read(go[0], &byte, 1);
        _exit(9);
    }
    long seized = ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_TRACEEXIT);
    (void)!write(go[1], \"x\", 1);
    for (int stops = 0; waitpid(child, &status, 0) == child; stops++) {
        printf(\"%ld %x\\n\", seized, status);
        if (!WIFSTOPPED(status))
            return WEXITSTATUS(status) != 9;
        ptrace(PTRACE_CONT, child, 0, 0);
    }
    return 2;
}
";
    let makefile = "seizes.out: seizes\n\t@./seizes > $@\nseizes: seizes.c\n\t@cc -o $@ $<\n";
    assert_builds_the_same(&[("seizes.c", program), ("Makefile", makefile)], &["make", "--no-print-directory"]);
}

/// A child that asks to be traced is recognized by its call, whatever its program.
#[apply(live_test)]
#[needs(Python)]
fn a_step_that_traces_its_own_child_is_the_same() {
    let script = "\
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
# From now on, the recorder knows how the C library executes programs.
os.spawnvp(os.P_WAIT, 'true', ['true'])
def asks_to_be_traced():
    child = os.fork()
    if child == 0:
        libc.ptrace(0, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(6)
    said = []
    while True:
        _, status = os.waitpid(child, 0)
        said.append(status)
        if not os.WIFSTOPPED(status):
            return said
        libc.ptrace(7, child, 0, 0)
print(asks_to_be_traced())
open('t.out', 'w').write('done')
";
    assert_builds_the_same(&[("t.py", script)], &["/usr/bin/python3", "-S", "t.py"]);
}

/// A seccomp filter may kill a process for a call that its program never makes, in a child before
/// its exec, or in all children of a process, or in its later ones. The calls are those of the
/// recorder's instructions.
#[apply(live_test)]
#[needs(Cc)]
fn steps_that_may_not_make_the_recorders_calls_are_the_same() {
    let program = "\
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void forbid(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tkill, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getcwd, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog all = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all))
        _exit(9);
}
int main(int count, char **arguments)
{
    for (int before = 0; before < 2; before++)
        (void)!system(\"true\");
    int is_in_child = count < 2, first = count < 2 ? -1 : **++arguments - '0', status;
    for (int child = 0; child < 6; child++) {
        if (child == first)
            forbid();
        pid_t pid = fork();
        if (pid == 0) {
            if (is_in_child)
                forbid();
            execl(\"/no/such/file\", \"true\", (char *)0);
            execl(\"/bin/true\", \"true\", (char *)0);
            _exit(8);
        }
        waitpid(pid, &status, 0);
        printf(\"%x\\n\", status);
    }
}
";
    let makefile = "\
all: child.out 0.out 3.out
child.out: filters
\t@./filters > $@
%.out: filters
\t@./filters $* > $@
filters: filters.c
\t@cc -o $@ $<
";
    let files = [("filters.c", program), ("Makefile", makefile)];
    let record = assert_builds_the_same(&files, &["make", "--no-print-directory"]);
    let all = launches(&record.file());
    assert_eq!(all.all(|launch| launch.command() == "true" && launch.exit_code() == Some(0)).len(), 18);
}
