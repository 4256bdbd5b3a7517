//! Advice about interpreters that are started repeatedly.

use spawnscope_analyze::advice::Advices;

use crate::builder::Spans;
use crate::serial::{Serial, advices, is_silent, only};

const COUNT: u64 = 20;

fn starting(argv: &[&str], run: u64, scripts: u64) -> Advices {
    let mut serial = Serial::new();
    let spans = Spans { run, ..Spans::USUAL };
    for number in 0..COUNT {
        let words: Vec<String> = argv
            .iter()
            .map(|word| word.replace('@', &(number % scripts).to_string()))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        serial.launch(&spans, Some((argv[0], &words)));
    }
    advices(&serial.finish())
}

#[test]
fn little_work_again_and_again_is_for_one_process() {
    let run = 3_000_000;
    // Up to three tenths of equal runs may be work; perl starts no slower than its exec and load.
    let (most, of_perl) = (run * 7 / 10, Spans::USUAL.exec + Spans::USUAL.load);
    let cases: [(&[&str], u64, &str); 4] = [
        (&["python3.11", "tool.py", "x@"], most, "importtime"),
        (&["perl", "-e", "print"], of_perl, "while (<>)"),
        (&["node", "tool.js"], most, "one node"),
        (&["java", "-jar", "tool.jar"], most, "one JVM"),
    ];
    for (argv, fixed, fix) in cases {
        let advice = only(&starting(argv, run, COUNT), "interpreter-start");
        assert_eq!(advice.finding.launches.len() as u64, COUNT);
        let each = Spans::USUAL.total() - Spans::USUAL.run + fixed;
        let off = advice.saving[0].0.abs_diff((COUNT - 1) * each);
        assert!(off < 100, "{argv:?}: {off}");
        assert!(advice.finding.fix.concat().contains(fix), "{:?}", advice.finding.fix);
    }
    let advice = only(&starting(&["python3", "tool.py"], 3_000_000, 1), "interpreter-start");
    assert_eq!(advice.finding.title, "bash starts python3 for tool.py 20 times");
}

#[test]
fn different_scripts_and_real_work_have_their_own_process() {
    let other_scripts = starting(&["python3", "test@.py"], 3_000_000, COUNT);
    assert!(is_silent(&other_scripts, "interpreter-start"), "{other_scripts:?}");
    assert!(is_silent(
        &starting(&["python3", "tool.py"], 200_000_000, 1),
        "interpreter-start"
    ));
    assert!(is_silent(
        &starting(&["pythonize", "x"], 3_000_000, 1),
        "interpreter-start"
    ));
}
