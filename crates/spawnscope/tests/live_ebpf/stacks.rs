//! Native call chains. They are complete and have the right names, however a process launches and
//! however it was built. If something prevents that, they are truncated and marked as such, and
//! never have a wrong name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use spawnscope::analyze::model::frames::Frame;
use spawnscope::analyze::model::tree::Forest;
use spawnscope::record::reader::RecordingFile;

use crate::support::prelude::*;
use crate::support::workloads::build_go;

/// One frame, as text that outlives the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnedFrame {
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    module: Option<String>,
    address: Option<u64>,
    is_inlined: bool,
}

#[derive(Clone, Debug)]
struct Chain {
    frames: Vec<OwnedFrame>,
    is_truncated: bool,
}

impl Chain {
    fn names(&self) -> Vec<&str> {
        let names = self.frames.iter().map(|frame| frame.function.as_deref());
        names.flatten().collect()
    }

    /// Whether the name of a function contains this part. Debug information and symbols have
    /// different names for functions of libc.
    fn has_name_with(&self, part: &str) -> bool {
        self.names().iter().any(|name| name.contains(part))
    }

    /// Returns the functions of one module, unnamed ones as `?`.
    fn names_in(&self, module: &str) -> Vec<&str> {
        let frames =
            self.frames.iter().filter(|frame| frame.module.as_deref().is_some_and(|path| path.ends_with(module)));
        frames.map(|frame| frame.function.as_deref().unwrap_or("?")).collect()
    }
}

fn base_name(path: &[u8]) -> String {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

fn owned_frame(frame: &Frame<'_>) -> OwnedFrame {
    OwnedFrame {
        function: frame.function.map(|name| String::from_utf8_lossy(name).into_owned()),
        file: frame.file.map(base_name),
        line: frame.line,
        module: frame.module.map(base_name),
        address: frame.address,
        is_inlined: frame.is_inlined,
    }
}

/// Returns the native chains of all launches that have one, in order of creation.
fn chains(file: &Path) -> Vec<Chain> {
    let recording = RecordingFile::open(file).and_then(|file| file.read());
    let recording = recording.expect("the recording");
    let forest = Forest::build(&recording);
    let stacks = forest.launches.iter().filter_map(|launch| launch.native_stack);
    let chains = stacks.map(|stack| {
        let mut frames = forest.frames(Some(stack));
        Chain {
            frames: frames.by_ref().map(|frame| owned_frame(&frame)).collect(),
            is_truncated: frames.is_truncated(),
        }
    });
    chains.collect()
}

fn record_with(flags: &[&str], command: &[&str]) -> Vec<Chain> {
    let record = Record::new().flags(&["--stacks"]).flags(flags).recorded(command);
    let report = report(&record.file());
    assert_eq!(report["lost_events"], 0, "{}", report["lost"]);
    chains(&record.file())
}

/// Records a workload, and returns the chain of its first launch.
#[track_caller]
fn chain_of(program: &Path, words: &[&str]) -> Chain {
    let mut command = vec![program.to_str().expect("a path of characters")];
    command.extend(words);
    let chains = record_with(&[], &command);
    chains.first().expect("a chain").clone()
}

/// Records `callers` or one of its variants with each of these mechanisms, and returns the chains
/// of the launches that they make.
#[track_caller]
fn chains_of(program: &str, mechanisms: &[&str]) -> Vec<Chain> {
    let script = format!("for mechanism in {}; do \"$0\" $mechanism; done", mechanisms.join(" "));
    let chains = record_with(&[], &["sh", "-c", &script, &word(program)]);
    let own: Vec<Chain> = chains.into_iter().filter(|chain| chain.names().contains(&"inner")).collect();
    assert_eq!(own.len(), mechanisms.len(), "a chain for each mechanism: {own:#?}");
    own
}

/// Go keeps its stacks apart, and its vfork keeps the return address in a register.
#[apply(live_test)]
#[needs(Go)]
fn a_launch_by_go_has_a_line_of_the_program_itself() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = "package main\n\nimport \"os/exec\"\n\nfunc build() {\n\texec.Command(\"/bin/true\").Run()\n}\n\nfunc main() {\n\tbuild()\n}\n";
    let record = Record::new().flags(&["--stacks"]).recorded([build_go(directory.path(), source)]);
    let report = read(&["report", "--json", "--by", "line"], &record.file()).json();
    let mut rows = report["commands"].as_array().expect("rows").iter();
    let row = rows.find(|row| row["caller"]["line"] == 6);
    let caller = &row.expect("the line of the launch")["caller"];
    assert_eq!(caller["function"], "main.build", "{caller}");
    let file = caller["file"].as_str();
    assert!(file.is_some_and(|file| file.ends_with("main.go")), "{caller}");
}

#[apply(live_test)]
fn no_chain_is_recorded_by_default() {
    let record = Record::new().recorded([&word("callers"), "vfork"]);
    assert!(chains(&record.file()).is_empty());
}

/// The workload's own functions in every chain without debug information. `middle` is inlined, and
/// so has no frame.
const OWN_FUNCTIONS: [&str; 4] = ["inner", "outer", "main", "_start"];

#[track_caller]
fn expect_complete(chain: &Chain, program: &str) {
    assert_eq!(chain.names_in(program), OWN_FUNCTIONS, "{chain:#?}");
    assert!(!chain.is_truncated, "{chain:#?}");
    assert!(chain.has_name_with("libc_start"), "{chain:#?}");
}

#[apply(live_test)]
fn every_mechanism_of_libc_has_its_whole_chain() {
    // `system` ends in a tail call, and so has no frame.
    let called = ["vfork", "fork", "posix_spawn", "spawn", "popen"];
    let mechanisms = ["vfork", "fork", "posix_spawn", "system", "popen"];
    let chains = chains_of("callers", &mechanisms);
    for ((mechanism, called), chain) in mechanisms.iter().zip(called).zip(chains) {
        expect_complete(&chain, "callers");
        assert!(chain.has_name_with(called), "{mechanism}: {chain:#?}");
        let mut frames = chain.frames.iter();
        let first_own = frames.position(|frame| frame.module.as_deref() == Some("callers"));
        assert!(first_own > Some(0), "libc makes the system call: {chain:#?}");
    }
}

#[apply(live_test)]
fn every_kind_of_executable_has_its_whole_chain() {
    for program in ["callers", "callers_fixed"] {
        expect_complete(&chain_of(&path(program), &["vfork"]), program);
    }
    let mechanisms = ["vfork", "posix_spawn", "system", "popen", "fork"];
    for (mechanism, chain) in mechanisms.iter().zip(chains_of("callers_static", &mechanisms)) {
        let names = chain.names();
        let own = names.iter().skip_while(|name| **name != "inner").collect::<Vec<_>>();
        assert_eq!(own[..3], [&"inner", &"outer", &"main"], "{mechanism}: {chain:#?}");
        assert_eq!(own.last(), Some(&&"_start"), "{mechanism}: {chain:#?}");
        assert!(!chain.is_truncated, "{mechanism}: {chain:#?}");
    }
}

/// Returns the line of the workload's source that has a mark.
fn line_of(mark: &str) -> Option<u32> {
    let source = fs::read_to_string(script("callers.c")).expect("the source");
    let mark = format!("/* line {mark} */");
    let line = source.lines().position(|line| line.contains(&mark));
    Some(u32::try_from(line.expect("the mark") + 1).expect("a line"))
}

fn expect_lines(chain: &Chain, program: &str) {
    let own = chain.frames.iter().filter(|frame| frame.module.as_deref() == Some(program));
    let own: Vec<&OwnedFrame> = own.collect();
    let frames: Vec<_> =
        own.iter().map(|frame| (frame.function.as_deref().unwrap_or("?"), frame.line, frame.is_inlined)).collect();
    let expected = [
        ("inner", line_of("vfork"), false),
        ("middle", line_of("middle"), true),
        ("outer", line_of("outer"), false),
        ("main", line_of("main"), false),
    ];
    assert_eq!(frames[..4], expected, "{chain:#?}");
    assert_eq!(own[0].file.as_deref(), Some("callers.c"));
}

#[apply(live_test)]
fn debug_information_gives_lines_and_inlined_functions() {
    expect_lines(&chain_of(&path("callers_debug"), &["vfork"]), "callers_debug");
}

/// Runs objcopy with an option and files.
#[track_caller]
fn objcopy(option: &str, files: &[&Path]) {
    run(Command::new("objcopy").arg(option).args(files)).expect_code(0);
}

/// Copies a workload, so that the copy can be changed.
fn copy(program: &str, directory: &Path) -> PathBuf {
    let copied = directory.join(program);
    fs::copy(path(program), &copied).expect("a copy");
    copied
}

/// The recorder runs in a mount namespace with its own /usr/lib/debug.
#[apply(live_test)]
#[needs(MountNs)]
fn separate_debug_information_is_found_by_its_build_id() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = copy("callers_debug", directory.path());
    let debug = directory.path().join("debug");
    objcopy("--only-keep-debug", &[&program, &debug]);
    objcopy("--strip-all", &[&program]);
    let add_debug_file = "id=$(readelf -n \"$0\" | sed -n 's/.*Build ID: //p'); mount -t tmpfs none /usr/lib/debug && \
        mkdir -p /usr/lib/debug/.build-id/${id%\"${id#??}\"} && \
        cp \"$1\" /usr/lib/debug/.build-id/${id%\"${id#??}\"}/${id#??}.debug && shift && exec \"$@\"";
    let texts = [&program, &debug].map(|path| path.to_str().expect("a path of characters"));
    let record = Record::new()
        .through(&["unshare", "--mount", "sh", "-c", add_debug_file, texts[0], texts[1]])
        .flags(&["--stacks"]);
    record.run([texts[0], "vfork"]).expect_code(0);
    expect_lines(&chains(&record.file())[0], "callers_debug");
}

#[apply(live_test)]
fn a_stripped_program_has_addresses_and_no_names() {
    let chain = chain_of(&path("callers_stripped"), &["vfork"]);
    assert_eq!(chain.names_in("callers_stripped"), ["?"; 4], "{chain:#?}");
    assert!(chain.frames.iter().all(|frame| frame.address.is_some()));
    assert!(!chain.is_truncated);
}

#[apply(live_test)]
fn a_chain_in_a_thread_ends_at_the_start_of_the_thread() {
    for mechanism in ["vfork", "posix_spawn", "fork"] {
        let chain = chain_of(&path("callers"), &["thread", mechanism]);
        assert_eq!(chain.names_in("callers"), ["inner", "outer", "thread_body"], "{chain:#?}");
        assert!(!chain.is_truncated, "{mechanism}: {chain:#?}");
    }
}

/// The shell forks its children and has ended before the recorder can read its /proc files.
#[apply(live_test)]
fn a_parent_that_has_ended_has_its_chain() {
    let chains = record_with(&[], &["sh", "-c", "sh -c '/bin/true & exit 0'; sleep 0.2"]);
    assert_eq!(chains.len(), 3, "two children of the outer shell, and one of the inner");
    for chain in &chains {
        assert!(!chain.is_truncated, "{chain:#?}");
        assert!(chain.has_name_with("libc_start"), "{chain:#?}");
    }
}

/// While the parent lives, its own file can still be read. Afterwards, no file has its names.
#[apply(live_test)]
fn a_program_that_is_deleted_or_replaced_never_has_wrong_names() {
    for linger in [&["linger"] as &[&str], &[]] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let program = copy("callers", directory.path());
        let other = copy("callers_other", directory.path());
        let other = other.to_str().expect("a path of characters");
        let words = [linger, &["replace", other, "vfork"]].concat();
        let chain = chain_of(&program, &words);
        let own = chain.names_in("callers");
        if own.contains(&"?") {
            assert!(linger.is_empty(), "{chain:#?}");
            assert_eq!(own, ["?"], "the chain ends at unknown code: {chain:#?}");
            assert!(chain.is_truncated);
            assert!(chain.frames.iter().all(|frame| frame.address.is_some()));
        } else {
            expect_complete(&chain, "callers");
        }
    }
}

#[apply(live_test)]
fn broken_unwind_tables_truncate_the_chain() {
    let patterns: [fn(usize) -> u8; 3] = [|_| 0, |_| 0xff, |offset| ((offset * 7919) >> 3) as u8];
    for pattern in patterns {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let program = copy("callers", directory.path());
        let section = directory.path().join("eh_frame");
        objcopy(&format!("--dump-section=.eh_frame={}", section.display()), &[&program]);
        let bytes = fs::metadata(&section).expect("the section").len();
        let broken: Vec<u8> = (0..usize::try_from(bytes).expect("a size")).map(pattern).collect();
        fs::write(&section, broken).expect("the section");
        objcopy(&format!("--update-section=.eh_frame={}", section.display()), &[&program]);
        let chain = chain_of(&program, &["vfork"]);
        assert_eq!(chain.names()[1..], ["inner"], "{chain:#?}");
        assert!(chain.is_truncated);
    }
}

#[apply(live_test)]
fn a_stack_that_is_too_deep_truncates_the_chain() {
    let chain = chain_of(&path("callers"), &["deep", "vfork"]);
    assert!(chain.is_truncated);
    let names = chain.names_in("callers");
    assert_eq!(names[..3], ["inner", "outer", "deep"], "{chain:#?}");
    let are_deep = names[2..].iter().all(|name| *name == "deep");
    assert!(are_deep && names.len() > 4, "{chain:#?}");
}

/// The second library is loaded where the first one was.
#[apply(live_test)]
fn libraries_that_are_loaded_later_are_known() {
    let [program, first, second] = &["callers", "libfirst_back.so", "libsecond_back.so"].map(word);
    let chains = record_with(&[], &[program, "libraries", first, second, "vfork"]);
    let names: Vec<_> = chains.iter().map(Chain::names).collect();
    for (names, call_back) in names.iter().zip(["first_calls_back", "second_calls_back"]) {
        assert_eq!(names[1..4], ["inner", "outer", call_back], "{names:?}");
    }
    assert_eq!(chains.len(), 2);
}

#[apply(live_test)]
#[needs(MountNs)]
fn a_program_in_another_mount_namespace_has_names() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let hidden = directory.path().join("callers");
    let script = "mount -t tmpfs none \"${1%/*}\" && cp \"$0\" \"$1\" && exec \"$1\" linger vfork";
    let texts = [&path("callers"), &hidden].map(|path| path.to_str().expect("a path of characters").to_owned());
    let chains = record_with(&[], &["unshare", "--mount", "sh", "-c", script, &texts[0], &texts[1]]);
    assert!(!hidden.exists(), "the file is visible only in the other namespace");
    expect_complete(chains.last().expect("a chain"), "callers");
}

#[apply(live_test)]
fn the_walk_continues_through_code_that_is_generated_at_run_time() {
    let chain = chain_of(&path("callers"), &["made", "vfork"]);
    assert!(["outer", "main"].iter().all(|name| chain.names().contains(name)), "{chain:#?}");
    assert!(!chain.is_truncated);
    let made = &chain.frames[3];
    assert_eq!((made.module.as_deref(), made.function.as_deref()), (None, None), "{made:?}");
}

const LOOP_OF_500: [&str; 3] = ["sh", "-c", "i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i+1)); done"];

#[track_caller]
fn expect_500_complete(chains: &[Chain]) {
    assert_eq!(chains.len(), 500);
    for chain in chains {
        assert!(!chain.is_truncated && chain.has_name_with("libc_start"), "{chain:#?}");
    }
}

#[apply(live_test)]
fn a_storm_with_stacks_loses_nothing() {
    expect_500_complete(&record_with(&[], &LOOP_OF_500));
}

/// /proc is read once for all stacks of a process, and the report says what that may miss.
#[apply(live_test)]
fn a_storm_without_mappings_from_the_kernel_loses_nothing() {
    let record = Record::new().flags(&["--stacks"]);
    let mut command = record.command(LOOP_OF_500);
    run(command.env("SPAWNSCOPE_EBPF_REFUSE", "bpf_iter_task_vma_new")).expect_code(0);
    let report = report(&record.file());
    assert_eq!(report["lost_events"], 0, "nothing is lost");
    let missing = report["missing"].as_array().expect("a list");
    let effects = missing.iter().filter_map(|missing| missing["effect"].as_str());
    let named = effects.filter(|effect| effect.contains("end before"));
    assert_eq!(named.count(), 1, "{missing:?}");
    expect_500_complete(&chains(&record.file()));
}
