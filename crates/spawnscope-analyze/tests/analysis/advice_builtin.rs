//! Advice about small programs whose work a shell can do: the text for each of them, and the cases
//! without advice.

use spawnscope_analyze::explain::advice::Advice;
use spawnscope_data::event::{LaunchId, LeftCpu, Mechanism, Nanos};

use crate::builder::Spans;
use crate::recordings::{
    COUNT, advice_on_calls, advice_on_captured_output, advice_on_substitutions, fix_of, substitution_recording,
};
use crate::serial::{READ, Serial, WAIT4, advices, is_silent, only};

#[test]
fn a_dirname_loop_becomes_an_expansion_and_saves_the_launches() {
    let found = advice_on_captured_output("/bin/bash", &["dirname", "/usr/lib/x"]);
    let advice = only(&found, "builtin");
    assert_eq!(advice.finding.launches.len(), COUNT);
    assert_eq!(advice.saving[0], Nanos(COUNT as u64 * Spans::USUAL.total()));
    assert_eq!(advice.finding.title, "bash launches dirname 40 times although `${p%/*}` would do");
    assert!(fix_of(&advice).contains("$(dirname \"$p\")  ->  ${p%/*}"), "{advice:?}");
    assert!(advice.finding.limits.contains("without a slash"), "{advice:?}");
    assert_eq!(advice.finding.example, ["dirname", "/usr/lib/x"].map(|word| word.as_bytes().to_vec()));
    assert_eq!(advice.finding.whatif, "--remove=dirname,parent=bash");
}

/// bash executes the last command of `-c` in its own process.
#[test]
fn a_script_in_the_process_of_a_needless_shell_is_a_script() {
    let mut serial = Serial::with_command("/bin/bash", &["bash", "-c", "./loop.sh"]);
    serial.builder.exec_at(LaunchId(1), b"/bin/bash", &[b"bash", b"./loop.sh"], [2_000_000, 2_100_000, 2_200_000]);
    for _ in 0..COUNT {
        serial.launch_waiting(&Spans::USUAL, Some(("basename", &["basename", "/usr/lib/x"])), WAIT4);
    }
    assert_eq!(only(&advices(&serial.finish()), "builtin").finding.launches.len(), COUNT);
}

#[test]
fn launches_with_unknown_arguments_are_left_out() {
    let mut serial = Serial::with_command("/bin/bash", &["bash", "-c", "..."]);
    for number in 0..COUNT {
        let launch = serial.launch_waiting(&Spans::USUAL, Some(("dirname", &["dirname", "/usr/lib/x"])), WAIT4);
        if number % 10 == 0 {
            let recording = &mut serial.builder.recording;
            let exec = recording.execs.iter_mut().find(|exec| exec.launch == launch);
            exec.unwrap().argv = recording.texts.push(b"");
        }
    }
    let found = advices(&serial.finish());
    let advice = only(&found, "builtin");
    assert_eq!(advice.finding.launches.len(), COUNT - COUNT / 10);
}

#[test]
fn a_delayed_launch_is_counted_and_one_with_more_work_is_not() {
    let mut serial = Serial::with_command("/bin/bash", &["bash", "-c", "..."]);
    let cost = Spans::USUAL.total() - Spans::USUAL.run;
    for number in 0..COUNT as u64 {
        // The first was only delayed; the second did work that the others did not do.
        let run = [2 * cost, 20 * cost].get(number as usize).copied().unwrap_or(Spans::USUAL.run);
        let spans = Spans { run, ..Spans::USUAL };
        serial.launch_waiting(&spans, Some(("dirname", &["dirname", "/usr/lib/x"])), WAIT4);
    }
    let found = advices(&serial.finish());
    assert_eq!(only(&found, "builtin").finding.launches.len(), COUNT - 1);
}

#[test]
fn output_of_a_plain_command_is_written_by_the_shell() {
    for (argv, expected) in [
        (&["dirname", "/usr/lib/x"][..], "  dirname \"$p\"  ->  printf '%s\\n' \"${p%/*}\"   (40"),
        (&["basename", "/a/b.c", ".c"], "->  b=${p##*/}; b=${b%.c}; printf '%s\\n' \"$b\"   (40"),
        (&["expr", "3", "+", "4"], "  expr \"$a\" + \"$b\"  ->  printf '%s\\n' \"$((a + b))\"   (40"),
        (&["date", "+%F"], "->  printf -v t '%(%F)T' -1; printf '%s\\n' \"$t\"   (40"),
    ] {
        let mut serial = Serial::with_command("/bin/bash", &["bash", "-c", "..."]);
        for _ in 0..COUNT {
            let launch = serial.launch_waiting(&Spans::USUAL, Some((argv[0], argv)), WAIT4);
            serial.builder.row(launch).mechanism = Some(Mechanism::Vfork);
        }
        let found = advices(&serial.finish());
        let advice = only(&found, "builtin");
        assert!(fix_of(&advice).contains(expected), "{advice:?}");
    }
}

#[test]
fn each_program_is_replaced_by_a_snippet_for_the_shell() {
    let (bash, sh) = ("/bin/bash", "/bin/dash");
    let cases: &[(&str, &[&str], &str)] = &[
        (sh, &["dirname", "--", "-x/y"], "${p%/*}"),
        (sh, &["basename", "/a/b"], "${p##*/}"),
        (sh, &["basename", "/a/b.c", ".c"], "b=${p##*/}; b=${b%.c}"),
        (bash, &["cat", "file"], "$(<\"$f\")"),
        (sh, &["cat", "file"], "IFS= read -r x <\"$f\""),
        (sh, &["expr", "3", "*", "4"], "$((a * b))"),
        (sh, &["expr", "3", "<", "4"], "[ \"$a\" -lt \"$b\" ]"),
        (sh, &["expr", "Xa", "=", "Xb"], "[ \"$a\" = \"$b\" ]"),
        (bash, &["expr", "abc", ":", "\\(a\\)"], "BASH_REMATCH"),
        (bash, &["seq", "10"], "for ((i = 1; i <= 10; i++))"),
        (sh, &["seq", "2", "10"], "i=2; while [ \"$i\" -le 10 ]"),
        (bash, &["tr", "a-z", "A-Z"], "${x^^}"),
        (bash, &["tr", "[:upper:]", "[:lower:]"], "${x,,}"),
        ("/bin/zsh", &["tr", "a-z", "A-Z"], "${(U)x}"),
        (bash, &["tr", ".", "_"], "${x//./_}"),
        (bash, &["cut", "-d:", "-f1"], "${x%%:*}"),
        (bash, &["cut", "-d", "|", "-f3"], "y=$x'||'; y=${y#*\\|}; y=${y#*\\|}; y=${y%%\\|*}"),
        (sh, &["cut", "-d ", "-f2"], "y=${x#* }; y=${y%% *}"),
        (sh, &["head", "-n1", "file"], "IFS= read -r x <\"$f\""),
        (bash, &["wc", "-l", "file"], "mapfile -t lines"),
        (bash, &["date", "+%s"], "$EPOCHSECONDS"),
        (bash, &["date", "+%F %T"], "printf -v t '%(%F %T)T' -1"),
        (bash, &["date", "+%s%3N"], "$((${EPOCHREALTIME//[.,]/} / 1000))"),
        (bash, &["id", "-u"], "$EUID"),
        (bash, &["hostname"], "$HOSTNAME"),
        (sh, &["which", "gcc"], "command -v \"$program\""),
        (sh, &["pwd"], "$PWD"),
        (sh, &["sed", "s/-.*//"], "${x%%-*}"),
        (sh, &["sed", "s/^lib//"], "${x#lib}"),
        (sh, &["sed", "s,^.*/,,"], "${x##*/}"),
        (bash, &["sed", "-e", "s/foo/bar/g"], "${x//foo/bar}"),
        (bash, &["awk", "{print $2}"], "read -r _ y _ <<<\"$x\""),
        (sh, &["awk", "{ print $2; }"], "set -- $x; set +f; y=$2"),
        (sh, &["awk", "{ print $10 }"], "set +f; y=${10}"),
        (sh, &["/bin/echo", "a"], "echo ..."),
        (bash, &["/usr/bin/printf", "a"], "printf ..."),
        (bash, &["/usr/bin/test", "-f", "x"], "test ..."),
        (sh, &["/usr/bin/[", "-f", "x", "]"], "[ ... ]"),
        (sh, &["/bin/true"], "true ..."),
    ];
    for (shell, argv, snippet) in cases {
        let found = advice_on_captured_output(shell, argv);
        let advice = only(&found, "builtin");
        assert!(fix_of(&advice).contains(snippet), "{shell} {argv:?}: {:?}", advice.finding.fix);
        assert!(advice.saving[1] > Nanos(5_000_000), "{shell} {argv:?}: {:?}", advice.saving);
    }
}

#[test]
fn calls_that_a_shell_may_not_replace_get_no_advice() {
    let (bash, sh) = ("/bin/bash", "/bin/dash");
    let cases: &[(&str, &[&str])] = &[
        (sh, &["tr", "a-z", "A-Z"]),
        (bash, &["tr", "-cs", "a-z", "\\n"]),
        (bash, &["cut", "-c1-3", "file"]),
        (bash, &["cut", "-d:", "-f1,3"]),
        (sh, &["date", "+%s"]),
        (bash, &["date", "-d", "tomorrow", "+%s"]),
        (bash, &["date", "+%:z"]),
        (bash, &["date", "+(%F)"]),
        (bash, &["date", "+"]),
        (bash, &["expr", "b", "<", "a"]),
        (bash, &["expr", "abc", ":", "a*"]),
        (bash, &["seq", "1", "0", "5"]),
        (sh, &["/bin/echo", "a\\tb"]),
        (bash, &["tr", "a", "&"]),
        (bash, &["tr", "a", "~"]),
        (bash, &["tr", "-d", "é"]),
        (bash, &["cut", "-d'", "-f2"]),
        (bash, &["cut", "-d\\", "-f2"]),
        (bash, &["cut", "-dé", "-f2"]),
        (bash, &["sed", "s/a/~/"]),
        (bash, &["sed", "s'a'b'"]),
        (bash, &["sed", "s/a\nb/c/"]),
        (bash, &["sed", "s/^a$//"]),
        (bash, &["cat", "a", "b"]),
        (bash, &["cat", "-n", "a"]),
        (bash, &["sed", "s/a\\(b\\)/\\1/"]),
        (bash, &["sed", "s/a/b/", "file"]),
        (bash, &["sed", "-n", "p"]),
        (bash, &["sed", "s/a/&b/"]),
        (bash, &["awk", "{print $NF}"]),
        (bash, &["awk", "{print $1}", "file"]),
        (bash, &["grep", "-q", "x", "file"]),
        (bash, &["seq", "-w", "10"]),
        (bash, &["mkdir", "a"]),
        (bash, &["ls"]),
        ("/usr/bin/make", &["dirname", "a/b"]),
        ("/usr/bin/python3", &["cat", "file"]),
    ];
    for (parent, argv) in cases {
        let found = advice_on_captured_output(parent, argv);
        assert!(is_silent(&found, "builtin"), "{parent} {argv:?}: {found:?}");
    }
    let shown = advice_on_calls((bash, "script"), "/bin/cat", &["cat", "file"], WAIT4);
    assert!(is_silent(&shown, "builtin"), "the shell does not read the output of cat: {shown:?}");
}

#[test]
fn a_script_gets_snippets_in_the_language_of_its_interpreter() {
    let mut serial = Serial::with_command("./configure", &["/bin/bash", "./configure"]);
    let interpreter = serial.builder.text(b"/bin/bash");
    serial.builder.recording.execs[0].interpreter = Some(interpreter);
    for _ in 0..COUNT {
        serial.launch_waiting(&Spans::USUAL, Some(("/usr/bin/tr", &["tr", "a-z", "A-Z"])), READ);
    }
    let advice = only(&advices(&serial.finish()), "builtin");
    assert!(advice.finding.title.starts_with("configure (generated code) launches tr"), "{advice:?}");
    assert!(fix_of(&advice).contains("${x^^}"), "{advice:?}");
}

#[test]
fn launches_with_enough_work_get_no_advice() {
    let mut serial = Serial::new();
    let busy = Spans { run: 20_000_000, ..Spans::USUAL };
    for _ in 0..COUNT {
        serial.launch_waiting(&busy, Some(("/bin/cat", &["cat", "big.iso"])), READ);
    }
    assert!(is_silent(&advices(&serial.finish()), "builtin"));
}

/// Returns the advice on launches, half of which also leave their CPU for 5 ms. All phases together
/// take less.
fn half_off_cpu(reason: LeftCpu) -> Advice {
    let mut serial = Serial::new();
    let dirname: Option<(&str, &[&str])> = Some(("/usr/bin/dirname", &["dirname", "/usr/lib/x"]));
    for number in 0..COUNT {
        if number % 2 == 0 {
            serial.launch_waiting(&Spans::USUAL, dirname, READ);
        } else {
            serial.launch_without_cpu(&Spans::USUAL, dirname, 5_000_000, reason);
        }
    }
    only(&advices(&serial.finish()), "builtin")
}

#[test]
fn a_launch_that_waited_for_a_cpu_is_counted_like_the_others() {
    let preempted = half_off_cpu(LeftCpu::Preempted).finding;
    assert_eq!(preempted.launches.len(), COUNT, "{preempted:?}");
    let slept = half_off_cpu(LeftCpu::Interruptible).finding;
    assert_eq!(slept.launches.len(), COUNT / 2, "sleeping may be its purpose: {slept:?}");
}

#[test]
fn a_single_call_gets_no_advice() {
    let mut serial = Serial::new();
    let slow = Spans { exec: 40_000_000, ..Spans::USUAL };
    serial.launch_waiting(&slow, Some(("/usr/bin/dirname", &["dirname", "a/b"])), READ);
    assert!(is_silent(&advices(&serial.finish()), "builtin"));
}

#[test]
fn a_program_whose_answer_does_not_change_is_launched_once() {
    let found = advice_on_captured_output("/bin/dash", &["uname", "-s"]);
    let advice = only(&found, "once");
    assert_eq!(advice.finding.launches.len(), COUNT);
    assert_eq!(advice.saving[0], Nanos((COUNT as u64 - 1) * Spans::USUAL.total()), "the first one stays");
}

#[test]
fn removing_a_filter_removes_its_subshell_and_the_echo_that_feeds_it() {
    let found = advice_on_substitutions("/bin/bash", 30, &["sed", "s/-.*//"]);
    let advice = only(&found, "builtin");
    assert_eq!(advice.finding.launches.len(), 30, "only sed is counted");
    assert!(fix_of(&advice).contains("${x%%-*}"), "{advice:?}");
    assert_eq!(advice.finding.whatif, "'--remove=(bash),parent=bash'", "descendants are removed as well");
    let subshell = Spans::USUAL.total() - Spans::USUAL.exec - Spans::USUAL.load - Spans::USUAL.setup;
    assert!(advice.saving[0] > Nanos(30 * subshell), "the subshell is removed as well: {:?}", advice.saving);
    assert!(advice.finding.evidence[1].contains("60 forks of the shell"), "{advice:?}");
    let findings = found.worth.iter().chain(found.not_worth.iter().map(|(_, advice)| advice));
    let forks = findings.filter(|advice| advice.finding.rule == "bare-forks").count();
    assert_eq!(forks, 0, "those forks are already reported: {found:?}");
}

#[test]
fn a_filter_of_the_one_line_of_a_program_is_replaced_though_it_waits() {
    let advice =
        |feeder: &[&str]| advices(&substitution_recording("/bin/dash", 30, Some(feeder), &["cut", "-d ", "-f1"]));
    assert!(fix_of(&only(&advice(&["sha256sum", "a b"]), "builtin")).contains("${x%% *}"));
    for several in [&["sha256sum", "a", "b"][..], &["ps", "-A"]] {
        assert!(is_silent(&advice(several), "builtin"), "{several:?}");
    }
}

#[test]
fn a_shell_does_all_of_a_line_unless_a_program_reads_a_file() {
    let advice = |feeder: &[&str]| advices(&substitution_recording("/bin/bash", 30, Some(feeder), &["tr", "-d", " "]));
    assert_eq!(only(&advice(&["basename", "a/b"]), "shell-line").finding.launches.len(), 90);
    assert!(is_silent(&advice(&["wc", "-c"]), "shell-line"), "no text has the size of a file");
    for reader in [&["grep", "a", "file"][..], &["head", "-c9", "file"]] {
        assert!(is_silent(&advice(reader), "shell-line"), "the shell would read the file each time: {reader:?}");
    }
}
