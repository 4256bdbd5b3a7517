//! Random texts: those that are accepted as one simple command have the same meaning in dash and
//! bash. `VSPAWN_PRELOAD_SEED` and `VSPAWN_PRELOAD_TEXTS` set the seed and the number of texts
//! (scripts/accel-fuzz.sh).

use std::io::Write;
use std::process::{Command, Stdio};

use crate::build::{Directory, Setting};
use crate::text::Words;

const PIECES: &[&str] = &[
    "a", "b", "0", "7", "/", ".", "-", "=", ":", ",", "+", "@", "%", "^", "_", " ", " ", "  ", "\t", "'", "'", "\"",
    "\"", "\\", "\\", "$", "`", "*", "?", "~", "#", "{", "}", "[", "]", "!", "(", ")", "\n", "'a b'", "\"a b\"",
    "\\\"", "\\'", "\\\\", "\\$", "ab", "''", "\"\"",
];
/// Further pieces, which only whole texts contain.
const REDIRECTIONS: &[&str] = &[
    " >a", " >>b", " 2>a", " 2> b", " <a", " <plain", ">a ", " 2>&1", " >&2", " 2>/dev/null ", " >/dev/null ",
    " >/dev/null 2>&1 ", " <missing", " >missing/x", " 1>a", "2>&1", ">", "<", "&",
];
/// Commands of whole texts. None of them has an effect outside of its directory.
const COMMANDS: &[&str] = &[
    "probe", "probe", "probe", "./probe", "'probe'", "pr\\obe", "\"./probe\"", "missing", "echo", "true", "test", "if",
    "script", "./plain", "a=b", "", "%a", "{",
];

pub fn number_from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
}

fn random_arguments(random: &mut fastrand::Rng) -> String {
    // Long lists are rarely accepted.
    let max = if random.bool() { 12 } else { 3 };
    let count = random.usize(0..max);
    (0..count).map(|_| *random.choice(PIECES).expect("pieces")).collect()
}

/// Each accepted text calls a shell function that prints its arguments. One shell process runs
/// thousands of texts.
#[test]
fn accepted_texts_are_split_into_the_words_that_both_shells_see() {
    let mut random = fastrand::Rng::with_seed(number_from_environment("VSPAWN_PRELOAD_SEED", 1));
    let mut remaining = number_from_environment("VSPAWN_PRELOAD_TEXTS", 5_000);
    let mut words = Words::new();
    while remaining > 0 {
        let mut script = b"p() { printf '%s\\0' \"$@\"; printf '\\1\\n'; }\n".to_vec();
        let mut expected = Vec::new();
        let mut texts = Vec::new();
        while texts.len() < 20_000.min(usize::try_from(remaining).expect("a count")) {
            let text = format!("p {}", random_arguments(&mut random));
            if words.read(text.as_bytes()).is_err() {
                continue;
            }
            let before = expected.len();
            for index in 1..words.count().max(2) {
                expected.extend_from_slice(words.get(index));
                expected.push(0);
            }
            expected.extend_from_slice(b"\x01\n");
            script.extend_from_slice(text.as_bytes());
            script.push(b'\n');
            texts.push((text, before));
        }
        remaining -= texts.len() as u64;
        for shell in [&["dash"][..], &["bash"], &["bash", "--posix"]] {
            let printed = output_of(shell, &script);
            if printed != expected {
                let same = printed.iter().zip(&expected).take_while(|(one, other)| one == other).count();
                let text = texts.iter().rev().find(|(_, start)| *start <= same);
                panic!("{shell:?} reads {text:?} differently");
            }
        }
    }
}

fn output_of(shell: &[&str], script: &[u8]) -> Vec<u8> {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(script).expect("a file");
    let output =
        Command::new("timeout").arg("300").args(shell).arg(file.path()).stdin(Stdio::null()).output().expect("a shell");
    assert!(output.status.success() && output.stderr.is_empty(), "{:?}", output.stderr);
    output.stdout
}

/// Returns whether a text writes only below its directory, and starts nothing that continues after
/// the text has ended. Excludes the shell's pid, too, which differs from run to run.
fn is_harmless(text: &str) -> bool {
    let rest = text.replace("/dev/null ", "").replace("missing/x", "").replace("./pr", "").replace("./plain", "");
    !text.contains("$$")
        && !text.replace("2>&1", "").replace(">&2", "").contains('&')
        && (!text.contains('>') || !rest.contains(['/', '$', '`', '~']))
}

/// Runs whole texts, accepted or not, and compares argv, environment, output and status with and
/// without the library.
#[test]
fn random_texts_have_the_same_result_with_and_without_the_library() {
    let mut random = fastrand::Rng::with_seed(number_from_environment("VSPAWN_PRELOAD_SEED", 1));
    let count = number_from_environment("VSPAWN_PRELOAD_WHOLE_TEXTS", 300);
    let directory = Directory::new();
    let mut skipped = 0;
    for _ in 0..count.div_ceil(100) {
        let texts: Vec<String> = (0..100)
            .map(|_| {
                loop {
                    let command = random.choice(COMMANDS).expect("commands");
                    let mut text = format!("{command} {}", random_arguments(&mut random));
                    for _ in 0..random.usize(0..3) {
                        text += random.choice(REDIRECTIONS).expect("redirections");
                        text += &random_arguments(&mut random).chars().take(2).collect::<String>();
                    }
                    if is_harmless(&text) {
                        break text;
                    }
                }
            })
            .collect();
        let texts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let shell = *random.choice(&["/bin/dash", "/bin/bash"]).expect("shells");
        let function = *random.choice(&["execve", "execl", "posix_spawn", "vfork", "system"]).expect("functions");
        let setting = Setting::new(function, shell).with("SHLVL", "1");
        skipped += directory.compare(&setting, &texts);
    }
    assert!(skipped > count / 20, "{skipped} of {count} skipped the shell");
}
