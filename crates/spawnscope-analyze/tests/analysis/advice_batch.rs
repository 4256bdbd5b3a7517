//! Advice about programs that are launched for one file at a time.

use spawnscope_analyze::explain::advice::{Advice, AdviceList};
use spawnscope_data::event::{Language, Nanos};

use crate::builder::Spans;
use crate::serial::{READ, Serial, WAIT4, advices, is_silent, only};

const COUNT: u64 = 30;

/// The saving per removed launch, in nanoseconds. When all runs are alike, three tenths of each
/// count as work that stays.
const SAVED: u64 = Spans::USUAL.total() - Spans::USUAL.run * 15 / 100;

/// Returns the advice on a launcher that runs a program once for each of `COUNT` files.
fn once_each(launcher: &[&str], program: &str, argv: impl Fn(String) -> Vec<String>, wait: u16) -> AdviceList {
    let mut serial = Serial::with_command(launcher[0], launcher);
    for number in 0..COUNT {
        let words = argv(format!("file{number}"));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        serial.launch_waiting(&Spans::USUAL, Some((program, &words)), wait);
    }
    advices(&serial.finish())
}

fn with_file(words: &[&str], file: &str) -> Vec<String> {
    words.iter().map(|word| word.replace('@', file)).collect()
}

fn advice_per_file(launcher: &[&str], argv: &[&str]) -> AdviceList {
    once_each(launcher, argv[0], |file| with_file(argv, &file), WAIT4)
}

fn texts_of(found: &AdviceList) -> String {
    found.worth.iter().cloned().flat_map(Advice::separated).map(|advice| advice.finding.fix.concat()).collect()
}

#[test]
fn a_loop_of_mv_becomes_one_mv() {
    let advice = only(&advice_per_file(&["/bin/bash", "x.sh"], &["mv", "-f", "@", "dir"]), "many-per-launch");
    assert_eq!(advice.finding.launches.len() as u64, COUNT);
    // The first launch and the work of the shell between launches remain.
    assert_eq!(advice.saving[0], Nanos((COUNT - 1) * SAVED));
    assert!(advice.finding.fix.concat().contains("mv -f -t dir -- \"${files[@]}\""), "{advice:?}");
    assert_eq!(advice.finding.whatif, format!("--batch=mv,parent=bash={COUNT}"));
    assert!(advice.finding.evidence.iter().any(|sentence| sentence.starts_with("1 launch would")), "{advice:?}");
}

#[test]
fn sed_takes_many_files_if_it_handles_each_by_itself() {
    let bash: &[&str] = &["/bin/bash", "x.sh"];
    let advice = only(&advice_per_file(bash, &["sed", "-i.old", "s/a/b/", "@"]), "many-per-launch");
    let fix = advice.finding.fix.concat();
    assert!(fix.contains("sed -i.old s/a/b/ -- \"${files[@]}\""), "{advice:?}");
    for other in [&["sed", "-n", "1p", "@"][..], &["sed", "-i", "3q", "@"], &["sed", "-i", "file", "-e", "s/@/b/"]] {
        let found = advice_per_file(bash, other);
        assert!(!texts_of(&found).contains("many files at once"), "{other:?}: {found:?}");
    }
}

/// `$` is the last line of each file.
#[test]
fn what_sed_writes_elsewhere_is_that_of_all_files() {
    let found =
        once_each(&["/bin/sh", "x.sh"], "/bin/sed", |number| with_file(&["sed", "-e", "$a\\", "@"], &number), WAIT4);
    assert!(texts_of(&found).contains("sed -s -e '$a\\' INPUT..."), "{found:?}");
}

#[test]
fn files_of_each_directory_are_moved_by_one_mv() {
    let found = once_each(
        &["/bin/bash", "x.sh"],
        "/bin/mv",
        |file| {
            let directory = if file.ends_with(['0', '2', '4', '6', '8']) { "even" } else { "odd" };
            with_file(&["mv", "@", directory], &file)
        },
        WAIT4,
    );
    let advice = only(&found, "many-per-launch");
    assert_eq!(advice.saving[0], Nanos((COUNT - 2) * SAVED), "two launches stay");
}

#[test]
fn xargs_and_find_are_advised_to_pass_many_arguments() {
    let cases: [(&[&str], &[&str], &str); 5] = [
        (&["xargs", "-n1", "gzip"], &["gzip", "-9", "@"], "xargs -n1 gzip -9  ->  xargs gzip -9"),
        (&["xargs", "-n", "1", "-P4", "gzip"], &["gzip", "@"], "xargs -n1 -P4 gzip  ->  xargs -n2 -P4 gzip"),
        (&["xargs", "-I{}", "mv", "{}", "d"], &["mv", "@", "d"], "xargs -I{} mv {} d  ->  xargs mv -t d"),
        (&["xargs", "--max-args=1", "stat"], &["stat", "@"], "xargs -n1 stat  ->  xargs stat"),
        (
            &["find", ".", "-exec", "chmod", "600", "{}", ";"],
            &["chmod", "600", "@"],
            "find ... -exec chmod 600 {} \\;  ->  find ... -exec chmod 600 {} +",
        ),
    ];
    for (launcher, argv, snippet) in cases {
        let advice = only(&advice_per_file(launcher, argv), "many-per-launch");
        assert!(advice.finding.fix.concat().contains(snippet), "{launcher:?}: {:?}", advice.finding.fix);
    }
}

#[test]
fn commands_that_must_run_for_each_file_get_no_advice() {
    let bash: &[&str] = &["bash", "x.sh"];
    let cases: [(&[&str], &[&str]); 13] = [
        (&["xargs", "-I{}", "gzip", "out/{}"], &["gzip", "out/@"]),
        (&["xargs", "-I%", "touch", "%.c"], &["touch", "@.c"]),
        (&["xargs", "-n1", "/usr/bin/echo"], &["/usr/bin/echo", "@"]),
        (bash, &["gcc", "-c", "@.c"]),
        (bash, &["rm", "-f", "conftest.o"]),
        (bash, &["mv", "@", "@.old"]),
        (bash, &["git", "log", "@"]),
        (&["xargs", "-n1", "sh", "-c", "x"], &["sh", "-c", "x", "@"]),
        (&["xargs", "-n1", "python3"], &["python3", "@"]),
        (&["xargs", "gzip"], &["gzip", "@"]),
        (&["find", ".", "-exec", "grep", "-q", "x", "{}", ";", "-print"], &["grep", "-q", "x", "@"]),
        (&["find", ".", "-exec", "sh", "-c", "x", "{}", ";"], &["sh", "-c", "x", "@"]),
        (&["/usr/bin/make"], &["touch", "@"]),
    ];
    for (launcher, argv) in cases {
        let found = advice_per_file(launcher, argv);
        assert!(!texts_of(&found).contains("many files at once"), "{launcher:?} {argv:?}: {found:?}");
    }
    let read = once_each(bash, "/usr/bin/file", |file| with_file(&["file", "@"], &file), READ);
    assert!(!is_silent(&read, "many-per-launch"), "the shell wants each answer, and one launch gives all: {read:?}");
}

#[test]
fn files_with_new_names_are_not_passed_together() {
    let found = |launcher: &str, argv: &[&str]| texts_of(&advice_per_file(&[launcher, "x"], argv));
    for launcher in ["/usr/bin/make", "/bin/bash"] {
        let renamed = found(launcher, &["cp", "src/@.c", "out/@.o"]);
        assert!(!renamed.contains("cp --") && !renamed.contains("-t DIRECTORY"), "{renamed}");
        let copies = found(launcher, &["cp", "template", "out/@"]);
        assert!(!copies.contains("cp template"), "{copies}");
        let same = found(launcher, &["cp", "-p", "src/@", "out/@/@"]);
        assert!(same.contains("`cp -p -t DIRECTORY FILES...`"), "{same}");
    }
}

#[test]
fn files_of_makes_in_several_directories_are_not_passed_together() {
    let found = |has_own_directories: bool| {
        let mut serial = Serial::with_command("/usr/bin/make", &["make"]);
        for number in 0..COUNT {
            let file = format!("{number}.stamp");
            let launch = serial.launch_waiting(&Spans::USUAL, Some(("/usr/bin/touch", &["touch", &file])), WAIT4);
            let line = serial.builder.line(Language::Make, "Makefile", 3, "");
            serial.builder.set_call_chain(launch, &[line]);
            if has_own_directories {
                let directory = serial.builder.text(format!("/home/{number}").as_bytes());
                serial.builder.recording.execs.last_mut().unwrap().cwd = Some(directory);
            }
        }
        texts_of(&advices(&serial.finish()))
    };
    assert!(found(false).contains("touch -- $^"));
    assert!(!found(true).contains("touch --"));
}

#[test]
fn the_value_of_an_option_is_not_one_of_the_files() {
    let bash: &[&str] = &["/bin/bash", "x.sh"];
    let of_flag = advice_per_file(bash, &["rm", "-f", "@.o", "@.d"]);
    assert!(texts_of(&of_flag).contains("rm -f --"), "{of_flag:?}");
    let of_value = advice_per_file(bash, &["/usr/bin/touch", "-r", "@.in", "@.out"]);
    assert!(!is_silent(&of_value, "many-per-launch") && !texts_of(&of_value).contains("touch -r"), "{of_value:?}");
}

#[test]
fn launches_with_enough_work_for_each_file_get_no_advice() {
    let busy = Spans { run: 30_000_000, ..Spans::USUAL };
    let mut serial = Serial::with_command("/usr/bin/xargs", &["xargs", "-n1", "gzip"]);
    for number in 0..COUNT {
        serial.launch(&busy, Some(("/bin/gzip", &["gzip", &format!("file{number}")])));
    }
    assert!(is_silent(&advices(&serial.finish()), "many-per-launch"));
}

#[test]
fn a_wrapper_around_a_loop_is_named_without_the_program_that_it_ran() {
    let mut serial = Serial::with_command("/bin/bash", &["bash", "x.sh"]);
    for number in 0..COUNT {
        let file = format!("file{}", number % 2);
        let line = ["nice", "-n", "1", "env", "A=1", "./slow.sh", &file];
        let launch = serial.launch_waiting(&Spans::USUAL, Some(("/usr/bin/nice", &line)), WAIT4);
        let loaded = serial.builder.recording.execs.last().unwrap().load_end.unwrap().0;
        let scripted: &[&[u8]] = &[b"/bin/bash", b"./slow.sh", file.as_bytes()];
        serial.builder.exec_at(launch, b"./slow.sh", scripted, [1_000, 9_000, 90_000].map(|at| loaded + at));
        let interpreter = serial.builder.text(b"/bin/bash");
        serial.builder.recording.execs.last_mut().unwrap().interpreter = Some(interpreter);
    }
    let texts = texts_of(&advices(&serial.finish()));
    assert!(texts.contains("nice -n 1 env A=1 sh -c 'for ...; do ...; done'"), "{texts}");
}
