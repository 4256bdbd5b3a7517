//! Call sites of launches: which frame is reported, and how launches are grouped, selected and
//! labelled by it.

use spawnscope_analyze::sites::callers::{Callers, Detail};
use spawnscope_analyze::sites::select::{SelectError, Selector};
use spawnscope_analyze::{GroupBy, report};
use spawnscope_data::rows::FrameRow;

use crate::prelude::*;
use crate::recordings::{MV, find, relocate, serial_unpacking, unpacking};
use crate::serial::{advices, only};

fn label_of(chain: impl FnOnce(&mut Builder) -> Vec<FrameRow>, detail: Detail) -> Option<String> {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    let launch = builder.launch(ROOT, 1_000_000, &Spans::USUAL, DIRNAME);
    let chain = chain(&mut builder);
    builder.set_call_chain(launch, &chain);
    let forest = Forest::build(&builder.recording);
    let callers = Callers::find(&forest, detail);
    assert_eq!(callers.call_site_of(0), None, "the recorder launched the command");
    callers.call_site_of(1).map(|place| String::from_utf8(place.label()).unwrap())
}

fn label_of_chain(language: Language, frames: &[(&str, u32, &str)]) -> String {
    let label = label_of(
        |builder| frames.iter().map(|(file, line, function)| builder.line(language, file, *line, function)).collect(),
        Detail::Line,
    );
    label.unwrap()
}

#[test]
fn a_script_is_labelled_by_its_innermost_line_or_function() {
    assert_eq!(label_of(relocate, Detail::Line).unwrap(), "unpack.sh:14 in relocate()");
    assert_eq!(label_of(relocate, Detail::Function).unwrap(), "relocate() in unpack.sh");
    for (detail, label) in [(Detail::Line, "configure:2040"), (Detail::Function, "configure")] {
        let top_level = label_of(|builder| vec![builder.line(Language::Dash, "./configure", 2_040, "")], detail);
        assert_eq!(top_level.unwrap(), label);
    }
    assert_eq!(
        label_of(|builder| vec![FrameRow { file: None, ..builder.line(Language::Bash, "", 3, "") }], Detail::Line)
            .unwrap(),
        "bash line 3",
        "as of bash -c"
    );
}

#[test]
fn a_function_without_a_line_is_labelled_by_the_calling_line_in_its_file() {
    for (detail, label) in [(Detail::Line, ".bashrc:22"), (Detail::Function, "pyenv() in .bashrc")] {
        let evaluated = |builder: &mut Builder| {
            let function = builder.line(Language::Bash, "/home/user/.bashrc", 1, "pyenv");
            let outer = builder.line(Language::Bash, "/home/user/.bashrc", 22, "");
            vec![FrameRow { line: None, ..function }, outer]
        };
        assert_eq!(label_of(evaluated, detail).unwrap(), label);
    }
}

/// A helper that starts one program for all its callers names none of its subcommands.
#[test]
fn the_line_behind_a_helper_names_the_subcommand() {
    let mut serial = Serial::with_command("/usr/bin/python3", &["python3", "main.py"]);
    for number in 0..20 {
        let path = format!("f{number}");
        let (line, argv) = if number == 0 { (4, ["git", "status", "-s"]) } else { (7, ["git", "log", &path]) };
        let launch = serial.launch(&Spans::USUAL, Some(("/usr/bin/git", &argv)));
        let frames = [("proc.py", 10, "run"), ("main.py", line, "main")];
        let chain = frames.map(|(file, line, function)| serial.builder.line(Language::Python, file, line, function));
        serial.builder.set_call_chain(launch, &chain);
    }
    let advice = only(&advices(&serial.finish()), "many-per-launch");
    assert!(advice.finding.evidence.contains(&"call site: main.py:7 in main()".to_owned()), "{advice:?}");
}

#[test]
fn a_makefile_is_labelled_by_its_line_and_target() {
    for (detail, label) in
        [(Detail::Line, "Makefile:12 (target hello.o)"), (Detail::Function, "Makefile (target hello.o)")]
    {
        let rule = label_of(|builder| vec![builder.line(Language::Make, "/src/Makefile", 12, "hello.o")], detail);
        assert_eq!(rule.unwrap(), label);
    }
    assert_eq!(
        label_of(|builder| vec![builder.line(Language::Make, "/src/Makefile", 3, "")], Detail::Line).unwrap(),
        "Makefile:3"
    );
    let label = label_of(
        |builder| vec![FrameRow { file: None, line: None, ..builder.line(Language::Make, "", 1, "hello.o") }],
        Detail::Line,
    )
    .unwrap();
    assert_eq!(label, "built-in rule of make (target hello.o)");
}

#[test]
fn launches_of_all_targets_of_a_makefile_line_are_grouped() {
    let mut builder = Builder::command("/usr/bin/make", &["make"], 1_000_000_000);
    for (start, (line, target)) in (1u64..).zip([(7, "a.o"), (7, "b.o"), (9, "hello")]) {
        let launch = builder.launch(ROOT, start * 10_000_000, &Spans::USUAL, DIRNAME);
        let frame = builder.line(Language::Make, "/src/Makefile", line, target);
        builder.set_call_chain(launch, &[frame]);
    }
    let forest = Forest::build(&builder.recording);
    let callers = Callers::find(&forest, Detail::Line);
    let labels = [1, 2, 3].map(|launch| String::from_utf8(callers.call_site_of(launch).unwrap().label()).unwrap());
    assert_eq!(labels, ["Makefile:7", "Makefile:7", "Makefile:9 (target hello)"]);
    let callers = Callers::find(&forest, Detail::Function);
    let label = String::from_utf8(callers.call_site_of(2).unwrap().label()).unwrap();
    assert_eq!(label, "Makefile (target b.o)");
}

#[test]
fn many_scripts_that_differ_only_in_arguments_are_grouped() {
    let few = ["1: sh -c 'dirname /x/0; true'", "1: sh -c 'dirname /x/1; true'"];
    for (count, expected) in [(5, &["5: sh -c 'dirname …'"][..]), (2, &few)] {
        let mut builder = Builder::command("/usr/bin/make", &["make"], 1_000_000_000);
        for number in 0..count {
            let script = format!("dirname /x/{number}; true");
            let start = 1_000_000 + number * 10_000_000;
            let shell = builder.launch(ROOT, start, &Spans::USUAL, Some(("/bin/sh", &["sh", "-c", &script])));
            let launch = builder.launch(shell, start + 2_000_000, &Spans::USUAL, DIRNAME);
            let frame = FrameRow { file: None, ..builder.line(Language::Dash, "", 1, "") };
            builder.set_call_chain(launch, &[frame]);
        }
        let forest = Forest::build(&builder.recording);
        let callers = Callers::find(&forest, Detail::Line);
        let launches: Vec<u32> = (0..forest.launches.len() as u32).collect();
        let largest = callers.count(&launches).largest;
        let labels =
            largest.iter().map(|(place, count)| format!("{count}: {}", String::from_utf8(place.label()).unwrap()));
        assert_eq!(labels.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn frames_in_pythons_standard_library_are_skipped() {
    let library = ("/usr/lib/python3.11/subprocess.py", 1955, "Popen._execute_child");
    let installed = ("/usr/local/lib/python3.11/site-packages/git/cmd.py", 980, "Git.execute");
    let (function, top_level) = (("tool.py", 7, "status"), ("tool.py", 9, ""));
    for (frames, label) in [
        (&[library, function, top_level][..], "tool.py:7 in status()"),
        (&[library, top_level], "tool.py:9"),
        (&[library, installed, top_level], "cmd.py:980 in Git.execute()"),
        // The best available.
        (&[library, ("<frozen runpy>", 88, "_run_code")], "subprocess.py:1955 in Popen._execute_child()"),
    ] {
        assert_eq!(label_of_chain(Language::Python, frames), label);
    }
}

/// What npm launches is in `package.json`.
#[test]
fn frames_of_npm_are_no_call_site() {
    let npm = ("/usr/lib/node_modules/npm/node_modules/@npmcli/promise-spawn/lib/index.js", 39, "promiseSpawn");
    let label = |frames: &[(&str, u32, &str)]| {
        let chain = |builder: &mut Builder| {
            frames.iter().map(|(file, line, name)| builder.line(Language::Node, file, *line, name)).collect()
        };
        label_of(chain, Detail::Line)
    };
    assert_eq!(label(&[npm]), None);
    assert_eq!(label(&[npm, ("/x/tool.js", 3, "run")]).as_deref(), Some("tool.js:3 in run()"));
}

#[test]
fn machine_code_is_labelled_by_the_first_function_outside_the_c_library() {
    let vfork = ("/lib/x86_64-linux-gnu/libc.so.6", "__vfork", 0xd1000);
    let (git, main) = (("/usr/bin/git", "start_command", 0x1000), ("/usr/bin/git", "main", 0x2000));
    let (spawn, unnamed) = (("/usr/bin/static", "posix_spawn", 0x500), ("/usr/bin/static", "", 0xabc));
    let (fork, plugin) = (("/usr/bin/python3.11", "os_fork", 0x500), ("/opt/plugin.so", "plugin_run", 0x100));
    for (frames, label) in [
        (&[vfork, git, main][..], Some("start_command() in git")),
        (&[spawn, unnamed], Some("static+0xabc")),
        (&[fork, plugin], Some("plugin_run() in plugin.so")),
        (&[("/lib/ld-linux-x86-64.so.2", "", 0x500)], None),
    ] {
        let found = label_of(
            |builder| frames.iter().map(|(file, name, address)| builder.code(file, name, *address)).collect(),
            Detail::Line,
        );
        assert_eq!(found.as_deref(), label);
    }
}

#[test]
fn frames_in_the_libraries_of_go_and_rust_are_skipped() {
    let go = [
        ("/usr/local/go/src/syscall/asm_linux_amd64.s", 25, "syscall.rawVforkSyscall"),
        ("/usr/local/go/src/os/exec/exec.go", 702, "os/exec.(*Cmd).Start"),
        ("/home/user/build/os.go", 14, "main.run"),
    ];
    assert_eq!(label_of_chain(Language::Native, &go), "os.go:14 in main.run()");
    let rust = [
        ("/rustc/5980/library/std/src/process.rs", 1109, "std::process::Command::spawn"),
        ("src/library/main.rs", 8, "tool::library::run"),
    ];
    assert_eq!(label_of_chain(Language::Native, &rust), "main.rs:8 in tool::library::run()");
    let neither = [("os.c", 3, "os.start"), ("main.c", 9, "main")];
    assert_eq!(label_of_chain(Language::Native, &neither), "os.c:3 in os.start()");
}

#[test]
fn files_with_the_same_name_are_distinguished() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    for (number, file) in ["/a/configure", "/b/configure", "/b/other"].iter().enumerate() {
        let launch = builder.launch(ROOT, number as u64 * 2_000_000, &Spans::USUAL, DIRNAME);
        let line = builder.line(Language::Bash, file, 5, "");
        builder.set_call_chain(launch, &[line]);
    }
    let forest = Forest::build(&builder.recording);
    let callers = Callers::find(&forest, Detail::Line);
    let labels = [1, 2, 3].map(|index| String::from_utf8(callers.call_site_of(index).unwrap().label()).unwrap());
    assert_eq!(labels, ["/a/configure:5", "/b/configure:5", "other:5"]);
}

#[test]
fn a_file_is_named_as_the_command_line_names_it() {
    let mut builder = Builder::command("/bin/sh", &["sh", "./x.sh"], 1_000_000_000);
    builder.recording.execs[0].cwd = Some(builder.text(b"/src"));
    for (number, file) in ["./x.sh", "/src/x.sh", "/src/y.sh"].iter().enumerate() {
        let launch = builder.launch(ROOT, number as u64 * 2_000_000, &Spans::USUAL, DIRNAME);
        let line = builder.line(Language::Dash, file, 5, "");
        builder.set_call_chain(launch, &[line]);
    }
    let forest = Forest::build(&builder.recording);
    let callers = Callers::find(&forest, Detail::Line);
    let files = [1, 2, 3].map(|index| callers.call_site_of(index).unwrap().file.clone().unwrap());
    assert_eq!(files, [&b"./x.sh"[..], b"./x.sh", b"/src/y.sh"]);
}

#[test]
fn launches_are_grouped_by_line_and_none_is_dropped() {
    let found = report(&unpacking(), GroupBy::Line);
    let counts: u64 = found.groups.iter().map(|group| group.sums.count).sum();
    assert_eq!(counts, found.all.count);
    let line = find(&found.groups, "unpack.sh:14 in relocate()");
    assert_eq!(line.sums.count, 10);
    assert_eq!(line.launched, [(b"dirname".to_vec(), 5), (b"(bash)".to_vec(), 5)], "programs before forks");
    let forks = 5 * (Spans::USUAL.create + Spans::USUAL.queue + 2_000_000 + Spans::USUAL.teardown + Spans::USUAL.reap);
    assert_eq!(line.inclusive.total, Nanos(forks), "dirname is within the forks");
    assert_eq!(find(&found.groups, "(bash: unknown line)").sums.count, 1);
    assert_eq!(find(&found.groups, "(recorder)").sums.count, 1);
    let by_function = report(&unpacking(), GroupBy::Caller).groups;
    assert_eq!(find(&by_function, "relocate() in unpack.sh").sums.count, 10);
    assert_eq!(find(&by_function, "unpack.sh").sums.count, 5);
    assert_eq!(find(&by_function, "(bash: unknown function)").sums.count, 1);
}

#[test]
fn many_lines_are_counted_beyond_the_first_ten() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 100_000_000);
    for number in 1..=12 {
        let launch = builder.launch(ROOT, u64::from(number) * 2_000_000, &Spans::USUAL, MV);
        let line = builder.line(Language::Bash, "a.sh", number, "");
        builder.set_call_chain(launch, &[line]);
    }
    let found = report(&builder.recording, GroupBy::Command);
    let callers = &find(&found.groups, "mv").callers;
    assert_eq!((callers.largest.len(), callers.other_call_sites, callers.others), (10, 2, 2));
}

#[test]
fn advice_names_the_lines() {
    let advice = only(&advices(&serial_unpacking().finish()), "builtin");
    let evidence = &advice.finding.evidence;
    let lines = "launched from unpack.sh:14 in relocate() (30 times) and 1 more line";
    assert!(evidence.iter().any(|sentence| sentence == lines), "{evidence:?}");
    assert_eq!(advice.callers.largest[1].1, 10);
}

#[test]
fn advice_names_its_only_line_once() {
    let mut serial = Serial::with_command("/bin/bash", &["bash", "unpack.sh"]);
    for _ in 0..40 {
        let launch = serial.launch_waiting(&Spans::USUAL, DIRNAME, crate::serial::READ);
        let frame = serial.builder.line(Language::Bash, "unpack.sh", 3, "");
        serial.builder.set_call_chain(launch, &[frame]);
    }
    let evidence = only(&advices(&serial.finish()), "builtin").finding.evidence;
    assert_eq!(evidence.last().unwrap(), "call site: unpack.sh:3");
}

#[test]
fn launches_are_selected_by_line() {
    let recording = unpacking();
    let forest = Forest::build(&recording);

    for (text, count) in [
        ("line=unpack.sh:14", 10),
        ("line=/opt/unpack.sh:14", 10),
        ("line=opt/unpack.sh:14", 10),
        ("line=./unpack.sh", 15),
        ("line=unpack.sh:14-20", 15),
        ("line=unpack.sh:15-20,mv", 5),
        ("line=pack.sh:14", 0),
        ("line=unpack.sh:30", 0),
        ("line=unpack.sh:x", 0),
    ] {
        assert_eq!(Selector::parse(text).unwrap().select(&forest).unwrap().len(), count, "{text}");
    }
    let caller = Selector::parse("line=unpack.sh:30").unwrap();
    let called = caller.called_from(&forest);
    assert_eq!(called, Some(("unpack.sh:14".to_owned(), 10)));
    let reversed = Selector::parse("mv,line=unpack.sh:20-14");
    assert!(matches!(reversed, Err(SelectError::Reversed(_))), "{reversed:?}");
}

/// Returns the evidence of the advice on launches by a large Python process, whose innermost frame
/// is the Python function that forks.
fn evidence_on_forks_of_python(file: &str, function: &str, native: Option<&str>) -> Vec<String> {
    let mut serial = crate::advice_parents::calibrated("/usr/bin/python3.11");
    for _ in 0..20 {
        let spans = Spans { create: 3_000_000, exec: 2_000_000, ..Spans::USUAL };
        let launch: LaunchId = serial.launch(&spans, Some(("/bin/true", &["true"])));
        let row = serial.builder.row(launch);
        (row.parent_rss_bytes, row.mechanism) = (Some(300_000_000), Some(Mechanism::Fork));
        let inner = serial.builder.line(Language::Python, file, 71, function);
        let outer = serial.builder.line(Language::Python, "/srv/tool.py", 9, "main");
        serial.builder.set_call_chain(launch, &[inner, outer]);
        if let Some(function) = native {
            let frame = serial.builder.code("/usr/bin/python3.11", function, 0x10);
            serial.builder.set_call_chain(launch, &[frame]);
        }
    }
    only(&advices(&serial.finish()), "large-parent").finding.evidence
}

#[test]
fn a_fork_from_python_is_reported_with_the_call_that_made_it() {
    let subprocess = "/usr/lib/python3.11/subprocess.py";
    let multiprocessing = "/usr/lib/python3.11/multiprocessing/popen_fork.py";
    for (file, function, native, expected) in [
        (subprocess, "Popen._execute_child", None, "20 forks made by subprocess, which forks for preexec_fn"),
        (multiprocessing, "Popen._launch", None, "20 forks made by multiprocessing"),
        ("/usr/lib/python3.11/pty.py", "fork", None, "20 forks made by pty.fork()"),
        ("/srv/tool.py", "work", Some("os_fork"), "20 forks made by os.fork()"),
        ("/srv/tool.py", "work", None, "20 forks made by os.fork(), or a function of an extension"),
    ] {
        let evidence = evidence_on_forks_of_python(file, function, native);
        assert!(evidence.iter().any(|sentence| sentence.starts_with(expected)), "{expected}: {evidence:?}");
    }
    let evidence = evidence_on_forks_of_python(subprocess, "Popen._execute_child", None);
    assert_eq!(evidence.last().unwrap(), "call site: tool.py:9 in main()");
}
