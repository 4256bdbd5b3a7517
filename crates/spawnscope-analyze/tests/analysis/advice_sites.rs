//! Answers about sites: each part of the wall that depends on the launches of one program gets the
//! cure that its arguments allow.

use spawnscope_analyze::explain::advice::{Advice, AdviceList};
use spawnscope_data::event::{Language, LaunchId, Nanos, TaskId};

use crate::builder::Spans;
use crate::recordings::fix_of;
use crate::serial::{READ, Serial, WAIT4, advices, is_silent, only};
use crate::slices::{created, ended};

const BASH: &[&str] = &["/bin/bash", "x.sh"];
/// Fewer launches than any rule requires.
const COUNT: u64 = 4;
const LONG: Spans = Spans { run: 80_000_000, ..Spans::USUAL };

/// Returns the advice on `count` launches. Each `@` becomes the number of the round. `edit` changes
/// each launch.
fn advice_on(count: u64, argv: &[&str], spans: &Spans, edit: impl Fn(&mut Serial, LaunchId)) -> AdviceList {
    advice_with_wait(WAIT4, count, argv, spans, edit)
}

/// The same, with the call in which the shell waits.
fn advice_with_wait(
    call: u16,
    count: u64,
    argv: &[&str],
    spans: &Spans,
    edit: impl Fn(&mut Serial, LaunchId),
) -> AdviceList {
    let mut serial = Serial::with_command(BASH[0], BASH);
    for number in 0..count {
        let words: Vec<String> = argv.iter().map(|word| word.replace('@', &number.to_string())).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let launch = serial.launch_waiting(spans, Some((words[0], &words)), call);
        edit(&mut serial, launch);
    }
    advices(&serial.finish())
}

fn keep(_: &mut Serial, _: LaunchId) {}

fn evidence_of(advice: &Advice) -> String {
    advice.finding.evidence.join("\n")
}

#[test]
fn launches_with_the_same_arguments_are_made_once() {
    let advice = only(&advice_with_wait(READ, COUNT, &["/opt/settings", "--get", "x"], &LONG, keep), "once");
    assert_eq!(advice.finding.title, "bash launches settings 4 times with the same arguments");
    assert!(fix_of(&advice).contains("answer=$("), "{advice:?}");
    assert_eq!(advice.saving[0], Nanos((COUNT - 1) * LONG.total()));
    assert!(evidence_of(&advice).contains(" of the wall time depends on them"), "{advice:?}");
    let unsure = only(&advice_on(COUNT, &["/usr/bin/fetch-it", "http://localhost"], &LONG, keep), "many-per-launch");
    assert!(!fix_of(&unsure).contains("answer=$("), "its answer may change: {unsure:?}");
}

#[test]
fn launches_that_differ_in_one_argument_keep_the_others() {
    let advice = only(&advice_on(COUNT, &["/usr/bin/php", "-l", "f@.php"], &LONG, keep), "resident");
    assert_eq!(advice.finding.title, "bash launches php 4 times");
    assert!(!fix_of(&advice).contains("INPUT"), "php ignores further files: {advice:?}");
    let advice = only(&advice_on(COUNT, &["/opt/lint", "-l", "f@", "--strict"], &LONG, keep), "many-per-launch");
    assert!(fix_of(&advice).contains("\n  /opt/lint -l INPUT... --strict\n"), "{advice:?}");
    let filter = only(&advice_on(COUNT, &["/opt/t", "--filter=c@"], &LONG, keep), "many-per-launch");
    assert!(fix_of(&filter).contains("  /opt/t --filter=INPUT...\n"), "{filter:?}");
    let [_, low, high] = advice.saving;
    assert!(low < high && high >= Nanos((COUNT - 1) * LONG.total()), "a wide range: {:?}", advice.saving);
}

#[test]
fn a_front_end_prepares_the_program_once() {
    let built = Spans { run: 5_000_000, ..Spans::USUAL };
    let found = advice_on(COUNT, &["/usr/bin/go", "run", "./gen", "C@"], &LONG, |serial, go| {
        let row = serial.builder.row(go);
        let begins = row.exit.unwrap().0 - built.total() - 1_000_000;
        let child = serial.builder.launch(go, begins, &built, Some(("/tmp/go-build/gen", &["gen"])));
        serial.builder.row(child).parent_task = Some(TaskId(go.0));
        let row = serial.builder.row(child);
        let [born, ends] = [row.created, row.zombie].map(|at| at.unwrap().0);
        serial.slices.extend([created(child.0, born, built.queue), ended(child.0, born + built.queue, ends)]);
    });
    let advice = only(&found, "resident");
    assert_eq!(advice.finding.title, "bash launches go 4 times: each launch checks and links the program again");
    assert!(fix_of(&advice).contains("go build -o PROGRAM PACKAGE once"), "{advice:?}");
    let each = LONG.total() - built.total();
    assert_eq!(advice.saving[0], Nanos((COUNT - 1) * each), "the built program still runs");
    let other = only(&advice_on(COUNT, &["/usr/bin/go", "vet", "./p@"], &LONG, keep), "many-per-launch");
    assert!(!fix_of(&other).contains("go build"), "{other:?}");
}

#[test]
fn a_missing_program_is_not_launched_at_all() {
    let fail = |serial: &mut Serial, launch| serial.builder.row(launch).wait_status = Some(127 << 8);
    let advice = only(&advice_on(COUNT, &["/bin/sh", "-c", "missing f@"], &LONG, fail), "not-at-all");
    assert!(advice.finding.title.ends_with("which does not exist"), "{advice:?}");
    assert!(fix_of(&advice).contains("install the program"), "{advice:?}");
    assert_eq!(advice.saving[0], Nanos(COUNT * LONG.total()));
}

#[test]
fn a_fork_for_a_missing_program_is_no_subshell() {
    let mut serial = Serial::with_command(BASH[0], BASH);
    for _ in 0..30 {
        let fork = serial.launch(&Spans::USUAL, None);
        serial.builder.row(fork).wait_status = Some(127 << 8);
    }
    let found = advices(&serial.finish());
    assert_eq!(only(&found, "not-at-all").finding.title, "bash launches a missing program 30 times");
    assert!(is_silent(&found, "bare-forks"), "{found:?}");
}

#[test]
fn a_single_launch_that_holds_the_wall_is_named_with_its_line() {
    let found = advice_with_wait(READ, 1, &["/opt/slow-tool", "--alias"], &LONG, |serial, launch| {
        let line = serial.builder.line(Language::Bash, "/home/me/.bashrc", 7, "");
        serial.builder.set_call_chain(launch, &[line]);
    });
    let advice = only(&found, "resident");
    assert_eq!(advice.finding.title, "bash waits for one launch of slow-tool, at .bashrc:7");
    assert!(evidence_of(&advice).contains(".bashrc:7"), "{advice:?}");
    assert!(evidence_of(&advice).contains("in its own run"), "{advice:?}");
    assert_eq!(advice.saving[0], Nanos(LONG.total()));
}

/// The lines of a script that tests features compile the same file, with other options.
#[test]
fn lines_that_compile_the_same_file_are_one_finding() {
    let mut serial = Serial::with_command("/bin/sh", &["sh", "x.sh"]);
    for number in 0..12 {
        let words = if number < 6 { &["gcc", "-E", "t.c"][..] } else { &["gcc", "-o", "t", "t.c"] };
        let launch = serial.launch(&LONG, Some(("/usr/bin/gcc", words)));
        let line = serial.builder.line(Language::Dash, "x.sh", if number < 6 { 2 } else { 3 }, "");
        serial.builder.set_call_chain(launch, &[line]);
    }
    let advice = only(&advices(&serial.finish()), "many-per-launch");
    assert_eq!(advice.finding.launches.len(), 12, "{advice:?}");
    assert!(fix_of(&advice).starts_with("test several features with one compilation"), "{advice:?}");
}

/// Two lines of a loop give each file to one program, with other options. One round ends early.
#[test]
fn lines_with_the_same_inputs_are_one_finding() {
    let mut serial = Serial::with_command(BASH[0], BASH);
    for number in 0..39 {
        let file = format!("f{}.po", number / 2);
        let words = if number % 2 == 0 { ["msgfmt", &file, "--check"] } else { ["msgfmt", "--statistics", &file] };
        let launch = serial.launch(&Spans::USUAL, Some(("/usr/bin/msgfmt", &words)));
        let line = serial.builder.line(Language::Bash, "x.sh", 2 + number % 2, "");
        serial.builder.set_call_chain(launch, &[line]);
    }
    let found = advices(&serial.finish());
    assert_eq!(found.worth[0].finding.launches.len(), 39, "{found:?}");
}

/// What `ps` prints changes, but a script asks it for one picture of the machine.
#[test]
fn a_program_that_writes_the_same_into_each_pipeline_is_asked_once() {
    let pipelines = |has_pauses: bool| {
        let mut serial = Serial::with_command(BASH[0], BASH);
        for number in 0..12 {
            let writer = serial.launch(&Spans::USUAL, Some(("/usr/bin/ps", &["ps", "-e"])));
            let reader = serial.launch(&Spans::USUAL, Some(("/usr/bin/grep", &["grep", &format!("p{number}")])));
            let started = serial.builder.row(writer).created;
            serial.builder.row(reader).created = started;
            if has_pauses {
                serial.launch(&Spans::USUAL, Some(("/bin/sleep", &["sleep", "1"])));
            }
        }
        advices(&serial.finish())
    };
    let of_ps = |found: &AdviceList| {
        found.worth.iter().any(|advice| advice.finding.title.contains("launches ps") && advice.finding.rule == "once")
    };
    let found = pipelines(false);
    assert!(of_ps(&found), "{found:?}");
    assert!(!of_ps(&pipelines(true)), "it watches");
}

/// A few lines that ask jq about one file, once each.
#[test]
fn different_questions_about_one_file_are_one_finding() {
    let mut serial = Serial::with_command("/bin/sh", &["sh", "x.sh"]);
    for (number, filter) in [".a", ".b", ".c"].into_iter().enumerate() {
        let words = ["jq", "-r", filter, "f.json"];
        let launch = serial.launch_waiting(&LONG, Some(("/usr/bin/jq", &words)), READ);
        let line = serial.builder.line(Language::Dash, "x.sh", 2 + number as u32, "");
        serial.builder.set_call_chain(launch, &[line]);
    }
    let found = advices(&serial.finish());
    let titles: Vec<&str> = found.worth.iter().map(|advice| &advice.finding.title[..]).collect();
    assert_eq!(titles, ["sh launches jq 3 times, always about the same input"]);
}

#[test]
fn a_single_launch_that_does_its_work_gets_no_advice() {
    assert!(advice_on(1, &["/usr/bin/cc", "-c", "a.c"], &LONG, keep).worth.is_empty());
}

#[test]
fn a_cheap_site_is_not_named() {
    let mut serial = Serial::with_command(BASH[0], BASH);
    serial.launch_waiting(&LONG, Some(("/opt/slow-tool", &["slow-tool"])), READ);
    let small = Spans { run: 6_000_000, ..Spans::USUAL };
    serial.launch_waiting(&small, Some(("/opt/small-tool", &["small-tool"])), READ);
    let advice = only(&advices(&serial.finish()), "resident");
    assert!(advice.finding.title.contains("slow-tool"), "{advice:?}");
}

#[test]
fn a_site_that_another_finding_covers_is_not_named_twice() {
    let found = advice_on(30, &["/usr/bin/sha256sum", "f@"], &Spans::USUAL, keep);
    assert_eq!(found.worth.len(), 1, "{found:?}");
}

#[test]
fn a_wrapper_around_another_site_is_not_named() {
    let found = advice_with_wait(READ, 1, &["/bin/sh", "-c", "slow-tool; :"], &LONG, |serial, shell| {
        let inside = Spans { run: LONG.run - 5_000_000, ..Spans::USUAL };
        let row = serial.builder.row(shell);
        let (begins, task) = (row.exit.unwrap().0 - inside.total() - 1_000_000, row.id.0);
        let child = serial.builder.launch(shell, begins, &inside, Some(("/opt/slow-tool", &["slow-tool"])));
        serial.builder.row(child).parent_task = Some(TaskId(task));
        let row = serial.builder.row(child);
        let [born, ends] = [row.created, row.zombie].map(|at| at.unwrap().0);
        serial.slices.extend([created(child.0, born, inside.queue), ended(child.0, born + inside.queue, ends)]);
    });
    let titles: Vec<&str> = found.worth.iter().map(|advice| advice.finding.title.as_str()).collect();
    assert_eq!(titles.iter().filter(|title| title.contains("waits for one launch")).count(), 1, "{titles:?}");
}

#[test]
fn a_fix_that_removes_the_launches_of_each_line_is_one_finding() {
    let mut serial = Serial::with_command(BASH[0], BASH);
    for number in 0..90 {
        let path = format!("a/{number}");
        let launch = serial.launch_waiting(&Spans::USUAL, Some(("/usr/bin/dirname", &["dirname", &path])), READ);
        let line = serial.builder.line(Language::Bash, "x.sh", 2 + number % 3, "");
        serial.builder.set_call_chain(launch, &[line]);
    }
    let found = advices(&serial.finish());
    let rules: Vec<&str> = found.worth.iter().map(|advice| advice.finding.rule).collect();
    assert_eq!(rules, ["builtin"], "{found:?}");
    let whole = |other: &spawnscope_analyze::explain::advice::Advice| other.finding.launches.len() == 90;
    assert!(found.worth[0].alternatives.iter().all(whole), "lines with the same fixes are one site: {found:?}");
}

#[test]
fn what_each_launch_writes_or_runs_is_not_passed_at_once() {
    let code = "for f; do /opt/conv \"$f\" >\"$f.new\"; done";
    let mut serial = Serial::with_command("/bin/sh", &["sh", "-c", code]);
    for number in 0..COUNT {
        let launch = serial.launch(&LONG, Some(("/opt/conv", &["/opt/conv", &format!("f{number}")])));
        // Its line has an edit, although the fix was taken back.
        let line = serial.builder.line(Language::Dash, "x.sh", 2, "");
        serial.builder.set_call_chain(launch, &[line]);
    }
    let found = advices(&serial.finish());
    let own = only(&found, "many-per-launch");
    assert!(fix_of(&own).starts_with("each conv writes its own output, so one launch cannot"), "{own:?}");
    for words in
        [&["/opt/gen", "-o", "out@", "template"][..], &["/opt/gen", "--output=out@"], &["/opt/task", "run", "@"]]
    {
        let found = advice_on(COUNT, words, &LONG, keep);
        assert!(found.worth.iter().all(|advice| !fix_of(advice).contains("INPUT")), "{words:?}: {found:?}");
    }
}

#[test]
fn a_file_of_the_user_takes_back_what_it_shows_to_be_wrong() {
    let mut found = {
        let mut serial = Serial::with_command(BASH[0], BASH);
        for number in 0..COUNT {
            let launch = serial.launch(&LONG, Some(("/opt/conv", &["/opt/conv", &format!("f{number}")])));
            let line = serial.builder.line(Language::Bash, "x.sh", 2, "");
            serial.builder.set_call_chain(launch, &[line]);
        }
        advices(&serial.finish())
    };
    let text = |redirection: &str| format!("for f in *; do\n/opt/conv \"$f\"{redirection}\ndone\n").into_bytes();
    let fix = |found: &AdviceList| fix_of(&only(found, "many-per-launch"));
    for kept in ["", " >>log", " 2>/dev/null", " | sed s/a/b/"] {
        found.worth.iter_mut().for_each(|advice| advice.object(&mut |_| Some(text(kept))));
        assert!(fix(&found).contains("/opt/conv INPUT..."), "{kept}: {found:?}");
    }
    for (own, reason) in [
        (" >\"$f.new\"", "each conv writes its own output"),
        (" <\"$f.in\"", "each conv reads its own input"),
        (" | wc -l", "each wc reads what one conv prints"),
    ] {
        let mut own_found = found.clone();
        own_found.worth.iter_mut().for_each(|advice| advice.object(&mut |_| Some(text(own))));
        own_found.settle();
        assert!(fix(&own_found).starts_with(reason), "{own}: {own_found:?}");
    }
}

/// One launch cannot read what several read, but one launch can answer for all files.
#[test]
fn a_fix_with_an_edit_comes_before_one_that_was_taken_back() {
    let mut serial = Serial::with_command("/bin/sh", &["/bin/sh", "x.sh"]);
    for _ in 0..90 {
        let launch = serial.launch_waiting(&Spans::USUAL, Some(("/usr/bin/wc", &["wc", "-l"])), READ);
        let line = serial.builder.line(Language::Bash, "x.sh", 2, "");
        serial.builder.set_call_chain(launch, &[line]);
    }
    let mut found = advices(&serial.finish());
    assert_eq!(found.worth[0].finding.rule, "many-per-launch", "{found:?}");
    let text = b"for f in *; do\nn=$(wc -l <\"$f\")\ndone\n";
    found.worth.iter_mut().for_each(|advice| advice.object(&mut |_| Some(text.to_vec())));
    found.settle();
    let first = &found.worth[0];
    assert!(!first.finding.edits.is_empty() && !fix_of(first).contains("its own input"), "{found:?}");
}

/// Records two lines that ask in turn, and returns all fixes.
fn fixes_of_two_lines(words: impl Fn(u64, &str) -> Vec<String>, options: [&str; 2]) -> Vec<String> {
    let mut serial = Serial::with_command(BASH[0], BASH);
    for number in 0..2 * COUNT {
        let words = words(number / 2, options[(number % 2) as usize]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let launch = serial.launch_waiting(&LONG, Some((&format!("/usr/bin/{}", words[0]), &words)), READ);
        let line = serial.builder.line(Language::Bash, "x.sh", 2 + (number % 2) as u32, "");
        serial.builder.set_call_chain(launch, &[line]);
    }
    let found = advices(&serial.finish());
    found.worth.into_iter().flat_map(Advice::separated).map(|advice| fix_of(&advice)).collect()
}

#[test]
fn different_options_for_the_same_file_are_one_question() {
    let words = |number, option: &str| {
        let file = format!("c{number}");
        ["openssl", "x509", "-in", &file, "-noout", option].map(str::to_owned).to_vec()
    };
    let both =
        "ask both at once, if openssl takes these options together:\n  openssl x509 -in c0 -noout -subject -enddate";
    assert!(fixes_of_two_lines(words, ["-subject", "-enddate"]).iter().any(|fix| fix.starts_with(both)));
}

#[test]
fn different_subcommands_are_different_work() {
    let words = |_, words: &str| format!("git {words}").split(' ').map(str::to_owned).collect();
    let fixes = fixes_of_two_lines(words, ["gc --quiet", "fsck --quiet"]);
    assert!(!fixes.iter().any(|fix| fix.contains("git takes one per launch")), "{fixes:?}");
}

#[test]
fn questions_about_another_repository_are_no_list() {
    let words = |number, question: &str| format!("git -C r{number} {question}").split(' ').map(str::to_owned).collect();
    let fixes = fixes_of_two_lines(words, ["rev-parse HEAD", "status --porcelain"]);
    assert!(fixes[0].contains("\n  git status --porcelain=v2 --branch --show-stash "), "{fixes:?}");
    // One format asks for both, also in other repositories. git status has neither.
    let fixes = fixes_of_two_lines(words, ["log -1 --format=%s", "log -1 --format=%an"]);
    assert!(fixes.iter().any(|fix| fix.contains("%s%n%an")) && !fixes[0].contains("git status"), "{fixes:?}");
    let fixes = fixes_of_two_lines(words, ["log -1 HEAD", "log -1 HEAD"]);
    assert!(!fixes.is_empty() && !fixes.iter().any(|fix| fix.contains("for all items")), "{fixes:?}");
}

#[test]
fn a_guess_comes_after_what_certainly_saves_half_as_much() {
    let first = |rule: &'static str, sure: u64| {
        let advice = |is_guess: bool, millis: u64| {
            let mut advice = Advice::default();
            (advice.finding.rule, advice.finding.is_guess) = (if is_guess { "in-language" } else { rule }, is_guess);
            advice.finding.launches = vec![u32::from(!is_guess)];
            advice.saving = [10, 9, 11].map(|tenths| Nanos(millis * tenths * 100_000));
            advice
        };
        let worth = vec![advice(true, 100), advice(false, sure)];
        let mut list = AdviceList { worth, unrecorded: Nanos(1_000_000_000), ..AdviceList::default() };
        list.settle();
        list.worth[0].finding.is_guess
    };
    assert!(!first("in-language", 60) && first("in-language", 40));
}
