//! Advice about launches that ask the same question again, and about launches once per item.

use spawnscope_analyze::explain::advice::{Advice, AdviceList};
use spawnscope_data::event::{Language, Nanos};

use crate::builder::Spans;
use crate::recordings::{fix_of, substitution_recording};
use crate::serial::{READ, Serial, WAIT4, advices, is_silent, only};

const COUNT: u64 = 30;

/// Returns the advice on a program that repeats command lines. Each `@` becomes the number of the
/// round.
fn advice_on_repeats(parent: &[&str], lines: &[&[&str]], wait: u16) -> AdviceList {
    let mut serial = Serial::with_command(parent[0], parent);
    for number in 0..COUNT {
        for line in lines {
            let words: Vec<String> = line.iter().map(|word| word.replace('@', &number.to_string())).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let path = format!("/usr/bin/{}", words[0]);
            serial.launch_waiting(&Spans::USUAL, Some((&path, &words)), wait);
        }
    }
    advices(&serial.finish())
}

const BASH: &[&str] = &["/bin/bash", "deploy.sh"];
const SH: &[&str] = &["/bin/sh", "x.sh"];
const PYTHON: &[&str] = &["/usr/bin/python3.11", "deploy.py"];

#[test]
fn a_program_with_the_same_arguments_is_launched_once() {
    let found = advice_on_repeats(BASH, &[&["git", "rev-parse", "--show-toplevel"]], READ);
    let advice = only(&found, "once");
    assert_eq!(advice.finding.title, "bash launches git 30 times with the same arguments");
    // The first launch stays.
    assert_eq!(advice.saving[0], Nanos((COUNT - 1) * Spans::USUAL.total()));
    assert!(fix_of(&advice).contains("answer=$("), "{advice:?}");
    assert_eq!(advice.finding.whatif, "--remove=git,parent=bash");
    let found = advice_on_repeats(PYTHON, &[&["git", "--version"], &["uname", "-r"]], WAIT4);
    let both: Vec<_> = found.worth.iter().filter(|advice| advice.finding.rule == "once").collect();
    assert_eq!(both.len(), 2, "{found:?}");
    assert!(both.iter().all(|advice| fix_of(advice).contains("functools.cache")));
    assert!(!both.iter().any(|advice| fix_of(advice).contains("$(")), "nothing for shells");
}

#[test]
fn only_the_date_of_a_day_or_a_named_instant_stays_the_same() {
    let days = [&["date", "+%Y-%m-%d"][..], &["date", "-u", "+%-d. %B"], &["date", "+%F"]];
    for same in
        [&["date", "-u", "-d", "2020-01-31", "+%s"][..], &["date", "--date=2020-01-31T00:00Z"]].iter().chain(&days)
    {
        assert!(!is_silent(&advice_on_repeats(SH, &[same], READ), "once"), "{same:?}");
    }
    let next_day = &["date", "-d", "2020-01-31 next day"][..];
    // `-V` sorts versions.
    for other in [
        next_day,
        &["date", "-d", "12:00"],
        &["date", "-r", "f"],
        &["sort", "-V"],
        &["date"],
        &["date", "+%F %H"],
        &["date", "+%%%s"],
        &["date", "-r", "f", "+%F"],
    ] {
        assert!(is_silent(&advice_on_repeats(SH, &[other], READ), "once"), "{other:?}");
    }
    let now = advice_on_repeats(SH, &[&["date", "+%F %T"]], READ);
    let (_, awk) = now.worth[0].finding.fix[0].split_once("COMMANDS | ").expect("one process for all lines");
    let stamped = std::process::Command::new("sh").args(["-c", &format!("printf 'a b\\nc\\n' | {awk}")]).output();
    let stamped = String::from_utf8(stamped.expect("sh").stdout).unwrap();
    let lines: Vec<(&str, &str)> = stamped.lines().map(|line| line.split_at("2020-01-31 00:00:00 ".len())).collect();
    assert!(matches!(lines[..], [(time, "a b"), (_, "c")] if time.starts_with("20")), "{stamped}");
    let unchanged = advice_on_repeats(SH, &[&["hexdump", "state"]], READ);
    assert_eq!(unchanged.worth[0].finding.fix[0], "ask once and keep the answer, as long as nothing changes it");
}

#[test]
fn several_questions_to_one_program_are_one_finding() {
    let lines: [&[&str]; 2] = [&["git", "config", "user.name"], &["git", "rev-parse", "HEAD"]];
    let advice = only(&advice_on_repeats(BASH, &lines, READ), "once");
    assert!(advice.finding.title.ends_with("git 60 times with only 2 different command lines"));
    assert_eq!(advice.saving[0], Nanos(2 * (COUNT - 1) * Spans::USUAL.total()));
}

#[test]
fn a_question_whose_answer_is_filtered_in_the_same_way_is_asked_once_with_the_filter() {
    let feeder: &[&str] = &["getent", "passwd", "0"];
    let found = advices(&substitution_recording("bash", COUNT, Some(feeder), &["cut", "-d:", "-f1"]));
    let once = only(&found, "once");
    // The `$( )` is not needed, which takes longer than its pipeline.
    assert!(once.saving[0] > Nanos((COUNT - 1) * 2 * Spans::USUAL.total()), "{once:?}");
    assert!(found.worth.iter().all(|advice| advice.finding.rule == "once"), "one cause: {found:?}");
}

#[test]
fn questions_in_turn_about_each_value_of_the_input_are_asked_at_once() {
    let both = |lines: &[&[&str]; 2]| {
        let mut serial = Serial::with_command(BASH[0], BASH);
        for _ in 0..COUNT {
            for (number, line) in (2..).zip(lines) {
                let path = format!("/usr/bin/{}", line[0]);
                let launch = serial.launch_waiting(&Spans::USUAL, Some((&path, line)), READ);
                let line = serial.builder.line(Language::Bash, "deploy.sh", number, "");
                serial.builder.set_call_chain(launch, &[line]);
            }
        }
        let found = advices(&serial.finish()).worth.into_iter().flat_map(Advice::separated);
        found
            .filter(|advice| advice.finding.rule == "many-per-launch")
            .map(|advice| fix_of(&advice))
            .collect::<Vec<_>>()
    };
    let values = both(&[&["jq", "-r", ".id"], &["jq", "-r", ".name"]]);
    assert!(
        matches!(&values[..], [all, each] if all.contains("one jq for all") && each.contains("eval")),
        "{values:?}"
    );
    let commit = both(&[&["git", "log", "-1", "--format=%s", "HEAD"], &["git", "log", "-1", "--format=%an", "HEAD"]]);
    assert!(!commit.iter().any(|fix| fix.contains("once for all")), "no other commit: {commit:?}");
}

#[test]
fn command_lines_with_the_same_beginning_are_distinguished() {
    let options = "core.preloadindex=true,log.showSignature=false,color.ui=false";
    let lines: [&[&str]; 2] =
        [&["git", "-c", options, "config", "user.name"], &["git", "-c", options, "rev-parse", "--git-dir"]];
    let advice = only(&advice_on_repeats(PYTHON, &lines, READ), "once");
    let evidence = advice.finding.evidence.join("\n");
    assert!(evidence.contains("…") && evidence.contains(" config user.name"), "{evidence}");
    assert!(evidence.contains(" rev-parse --git-dir"), "{evidence}");
}

#[test]
fn changing_or_other_commands_are_not_repeated_questions() {
    let cases: [(&[&str], u16); 7] = [
        (&["date", "+%s"], READ),
        (&["git", "commit", "-m", "x"], WAIT4),
        (&["git", "status"], READ),
        (&["docker", "ps"], READ),
        (&["curl", "http://localhost"], READ),
        (&["./deploy-step"], WAIT4),
        (&["bash", "-c", "x"], READ),
    ];
    for (line, wait) in cases {
        let found = advice_on_repeats(PYTHON, &[line], wait);
        assert!(is_silent(&found, "once"), "{line:?}: {found:?}");
    }
    let different = advice_on_repeats(BASH, &[&["git", "rev-parse", "v@"]], READ);
    assert!(is_silent(&different, "once"), "{different:?}");
    // In a shell, a variable such as HOSTNAME is better than a stored answer.
    let found = advice_on_repeats(BASH, &[&["hostname"]], READ);
    assert!(is_silent(&found, "once") && !is_silent(&found, "builtin"), "{found:?}");
}

#[test]
fn advice_on_repeats_of_an_unknown_program_states_its_limits() {
    let advice = only(&advice_on_repeats(PYTHON, &[&["our-settings", "--get", "x"]], READ), "once");
    assert!(advice.finding.limits.contains("does not know what it depends on"), "{advice:?}");
}

#[test]
fn one_launch_answers_for_all_items() {
    let cases: [(&[&str], &str); 6] = [
        (&["git", "-C", "repo", "log", "-1", "--", "f@"], "git log --format='%H %ct' --name-only"),
        (&["git", "show", "HEAD:f@"], "git cat-file --batch"),
        (&["git", "rev-parse", "v@"], "git rev-parse A B C"),
        (&["docker", "inspect", "c@"], "docker inspect A B C"),
        (&["stat", "-c", "%s", "f@"], "stat -c %s FILES..."),
        (&["systemctl", "is-active", "unit@"], "systemctl is-active A B C"),
    ];
    for (line, fix) in cases {
        let advice = only(&advice_on_repeats(BASH, &[line], READ), "many-per-launch");
        assert!(fix_of(&advice).contains(fix), "{line:?}: {advice:?}");
        assert!(advice.saving[0] > Nanos((COUNT - 1) * Spans::USUAL.total() * 3 / 4), "{advice:?}");
    }
}

/// Returns the advice whose fix contains a text.
fn with_fix(found: &AdviceList, text: &str) -> Advice {
    let mut all = found.worth.iter().cloned().flat_map(Advice::separated);
    all.find(|advice| fix_of(advice).contains(text)).unwrap_or_else(|| panic!("no {text}: {found:?}"))
}

#[test]
fn the_whatif_selects_exactly_the_launches_of_the_advice() {
    let alone = only(&advice_on_repeats(BASH, &[&["git", "show", "c@"]], READ), "many-per-launch");
    assert_eq!(alone.finding.whatif, "--batch=git,parent=bash=1000");
    let among: [&[&str]; 2] = [&["git", "show", "c@"], &["git", "commit", "-m", "m@"]];
    let among = with_fix(&advice_on_repeats(BASH, &among, READ), "git cat-file");
    assert_eq!(among.finding.whatif, "'--batch=git,parent=bash,argv=*show*=1000'");
    let not_apart: [&[&str]; 2] = [&["git", "show", "c@"], &["git", "commit", "-m", "show@"]];
    let not_apart = with_fix(&advice_on_repeats(BASH, &not_apart, READ), "git cat-file");
    assert_eq!(not_apart.finding.whatif, "");
}

#[test]
fn arguments_that_are_no_list_of_items_get_no_advice() {
    let cases: [&[&str]; 4] = [
        &["git", "rev-parse", "HEAD"],
        &["git", "commit", "-m", "@"],
        &["systemctl", "restart", "unit@"],
        &["docker", "run", "image@"],
    ];
    for line in cases {
        let found = advice_on_repeats(BASH, &[line], READ);
        let texts: String = found.worth.iter().map(fix_of).collect();
        assert!(!texts.contains("ask once for all items"), "{line:?}: {texts}");
    }
}

#[test]
fn pairs_of_files_are_moved_by_one_process() {
    let advice = only(&advice_on_repeats(BASH, &[&["mv", "a/f@", "b/g@"]], WAIT4), "many-per-launch");
    assert!(advice.finding.title.ends_with(", once per pair of files"), "{advice:?}");
    assert!(fix_of(&advice).contains("mv(@f)"), "{advice:?}");
    assert!(advice.finding.whatif.starts_with("--batch=mv"), "{advice:?}");
    let advice = only(&advice_on_repeats(PYTHON, &[&["cp", "a/f@", "b/g@"]], WAIT4), "in-language");
    assert!(fix_of(&advice).contains("shutil.copy2") && !fix_of(&advice).contains("perl"), "{advice:?}");
    let advice = only(&advice_on_repeats(BASH, &[&["rm", "a@.o", "a@.d"]], WAIT4), "many-per-launch");
    assert!(fix_of(&advice).contains("xargs -0r rm --"), "{advice:?}");
}

#[test]
fn launches_of_several_lines_are_not_collected_in_a_loop() {
    let mut serial = Serial::with_command(BASH[0], BASH);
    for number in 1..=COUNT as u32 {
        let words = ["rm", &format!("a{number}.o"), &format!("a{number}.d")];
        let launch = serial.launch_waiting(&Spans::USUAL, Some(("/usr/bin/rm", &words)), WAIT4);
        let line = serial.builder.line(Language::Bash, "deploy.sh", number, "");
        serial.builder.set_call_chain(launch, &[line]);
    }
    let advice = only(&advices(&serial.finish()), "many-per-launch");
    assert!(fix_of(&advice).contains("rm -- FILES..."), "{advice:?}");
}

#[test]
fn repeated_files_and_a_common_destination_are_not_pairs() {
    let again = advice_on_repeats(BASH, &[&["rm", "-f", "conftest.o"]], WAIT4);
    assert!(is_silent(&again, "many-per-launch"), "{again:?}");
    let batched = advice_on_repeats(BASH, &[&["mv", "f@", "dir"]], WAIT4);
    assert!(!fix_of(&only(&batched, "many-per-launch")).contains("pairs"), "{batched:?}");
}

#[test]
fn grep_takes_many_patterns_or_files() {
    for (words, expected) in [
        (&["grep", "-q", "word@", "list"][..], "grep -F -f -"),
        (&["grep", "-c", "-e", "a b", "f@"], "grep -c -e 'a b' FILES..."),
        (&["zgrep", "x", "f@"], "zgrep x FILES..."),
    ] {
        let fix = fix_of(&only(&advice_on_repeats(BASH, &[words], WAIT4), "many-per-launch"));
        assert!(fix.contains(expected), "{fix}");
    }
    let again = advice_on_repeats(BASH, &[&["grep", "-q", "word", "list"]], WAIT4);
    assert!(is_silent(&again, "many-per-launch"), "{again:?}");
}
