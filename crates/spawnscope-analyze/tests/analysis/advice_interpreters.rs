//! Advice about interpreters that are started repeatedly.

use spawnscope_analyze::explain::advice::AdviceList;

use crate::builder::Spans;
use crate::serial::{Serial, advices, is_silent, only};

const COUNT: u64 = 20;

fn advice_on_starts(argv: &[&str], run: u64, scripts: u64) -> AdviceList {
    advice_on_starts_by(Serial::new(), argv, run, scripts)
}

fn advice_on_starts_by(mut serial: Serial, argv: &[&str], run: u64, scripts: u64) -> AdviceList {
    let spans = Spans { run, ..Spans::USUAL };
    for number in 0..COUNT {
        let words: Vec<String> = argv.iter().map(|word| word.replace('@', &(number % scripts).to_string())).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        serial.launch(&spans, Some((argv[0], &words)));
    }
    advices(&serial.finish())
}

#[test]
fn many_short_runs_of_an_interpreter_are_merged_into_one_process() {
    let run: u64 = 3_000_000;
    // If runs that are longer than their exec and load are alike, 8 % of them are assumed to be
    // work.
    let fixed = run * 92 / 100;
    let cases: [(&[&str], &str); 4] = [
        (&["python3.11", "tool.py", "x@"], "importtime"),
        (&["perl", "-e", "print"], "one Perl"),
        (&["node", "tool.js"], "one Node.js"),
        (&["java", "-jar", "tool.jar"], "one Java"),
    ];
    for (argv, fix) in cases {
        let advice = only(&advice_on_starts(argv, run, COUNT), "resident");
        assert_eq!(advice.finding.launches.len() as u64, COUNT);
        let each = Spans::USUAL.total() - Spans::USUAL.run + fixed;
        let error = advice.saving[0].0.abs_diff((COUNT - 1) * each);
        assert!(error < 100, "{argv:?}: {error}");
        assert!(advice.finding.fix.concat().contains(fix), "{:?}", advice.finding.fix);
    }
    let advice = only(&advice_on_starts(&["python3", "tool.py"], 3_000_000, 1), "resident");
    assert_eq!(advice.finding.title, "bash launches tool.py 20 times");
}

#[test]
fn different_scripts_are_merged_only_as_a_guess() {
    let other_scripts = only(&advice_on_starts(&["python3", "test@.py"], 3_000_000, COUNT), "resident");
    assert!(other_scripts.finding.is_guess, "{other_scripts:?}");
    assert!(is_silent(&advice_on_starts(&["pythonize", "x"], 3_000_000, 1), "resident"));
}

#[test]
fn a_process_of_the_same_language_loads_what_the_others_ran() {
    for (argv, loaded) in [
        (&["perl", "-w", "t/@.t"][..], "load each script in this process"),
        (&["perl", "-e", "print @"], "load the code in this process"),
        (&["perl", "convert", "@"], "load convert in this process"),
    ] {
        let serial = Serial::with_command("/usr/bin/perl", &["perl", "harness"]);
        let advice = only(&advice_on_starts_by(serial, argv, 3_000_000, COUNT), "resident");
        assert!(advice.finding.fix.concat().contains(loaded), "{:?}", advice.finding.fix);
    }
}
