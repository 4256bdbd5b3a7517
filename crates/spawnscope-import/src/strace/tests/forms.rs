//! Tests of logs that leave parts out, or that were changed on their way.

use super::*;

#[test]
fn the_only_process_left_has_no_number_although_it_is_not_known_yet_who_created_the_ended_one() {
    let found = described(
        r#"00:00:00.000000 execve("/bin/a", ["a"], NULL) = 0 <0.000001>
00:00:00.000010 vfork(strace: Process 8 attached
 <unfinished ...>
[pid     8] 00:00:00.000500 exit_group(1) = ?
[pid     8] 00:00:00.000600 +++ exited with 1 +++
00:00:00.000700 <... vfork resumed>) = 8 <0.000690>
00:00:00.000800 +++ exited with 0 +++
"#,
    );
    let kinds: Vec<&str> = found.iter().filter_map(|line| line.split_once(' ')).map(|(_, kind)| kind).collect();
    assert_eq!(
        kinds[3..],
        [
            "2: vfork by 1 from 10",
            "1: waited from 500 for 2 at 600",
            "2: exit Some(256)",
            "2: gone, zombie",
            "1: exit Some(0)",
            "1: gone, zombie"
        ]
    );
}

#[test]
fn logs_that_were_quoted_or_passed_through_a_ci_system_are_read() {
    let log = "8 1795837965.1 execve(\"/bin/a\", [\"a\"], NULL) = 0 <0.1>\n8 1795837965.3 exit_group(0) = ?\n";
    let expected = described(log);
    for front in ["> ", "> > ", "2026-11-29T12:00:01.1234567Z ", "web-1  | ", "Nov 29 12:00:01 host ci[7]: ", "    1\t"]
    {
        let lines = log.lines().map(|line| format!("{front}{line}\n"));
        assert_eq!(described(&lines.collect::<String>()), expected, "{front}");
    }
    assert!(Log::of_one(Lines::of_text(b"see printf(3) and wait(2)")).is_err());
}

#[test]
fn a_new_thread_is_not_the_first_process_that_had_no_number() {
    let found = described(
        r#"00:00:00.000000 execve("/bin/a", ["a"], NULL) = 0 <0.000001>
strace: Process 8 attached
[pid     8] 00:00:00.000500 execve("/bin/b", ["b"], NULL) = 0 <0.000001>
[pid     8] 00:00:00.000600 +++ exited with 0 +++
00:00:00.000700 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=8, si_uid=0, si_status=0} ---
00:00:00.000800 +++ exited with 0 +++
"#,
    );
    assert_eq!(found[3..5], ["500 2: ? by 1 from 0", "501 2: /bin/b [b]"]);
}

#[test]
fn calls_that_last_until_another_second_end_in_that_second() {
    let found = described(
        r#"1 00:00:01 vfork() = 2 <0.000010>
1 00:00:01 wait4(-1,  <unfinished ...>
2 00:00:02 exit_group(0) = ?
2 00:00:02 +++ exited with 0 +++
1 00:00:02 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 2 <0.200000>
"#,
    );
    assert_eq!(
        found[3..],
        ["1000000 2: gone, zombie", "1000000 1: waited from 10 for 2 at 1000000", "1000000 1: reaped 2"]
    );
}

#[test]
fn without_creations_the_signal_of_its_end_says_whose_child_a_process_was() {
    let ended = |parent: u32, child: u32| {
        format!(
            "{parent} --- SIGCHLD {{si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid={child}, si_uid=0, si_status=0}} ---"
        )
    };
    let found = described(&lines(&[
        (0, STARTED),
        (500, r#"3 execve("/bin/c", ["c"], NULL) = 0 <0.000001>"#),
        (900, "3 +++ exited with 0 +++"),
        (910, &ended(2, 3)),
        (920, "2 +++ exited with 0 +++"),
        (930, &ended(1, 2)),
        (940, "1 +++ exited with 0 +++"),
    ]));
    assert_eq!(
        found[3..],
        [
            "500 2: ? by 1 from 0",
            "500 3: ? by 2 from 0",
            "501 3: /bin/c [c]",
            "501 3: returned 501, loaded None",
            "900 3: exit Some(0)",
            "900 3: gone, zombie",
            "910 2: waited from 500 for 3 at 910",
            "910 2: reaped 3",
            "920 2: exit Some(0)",
            "920 2: gone, zombie",
            "930 1: waited from 500 for 2 at 930",
            "930 1: reaped 2",
            "940 1: exit Some(0)",
            "940 1: gone, zombie",
        ]
    );
}
