//! Tests that secrets are masked (`tests/secrets.txt`), and that ordinary arguments are not
//! (`tests/harmless.txt`). Each command is tested both as separate arguments and as shell text.

use super::*;

const SECRETS: &str = include_str!("tests/secrets.txt");
const HARMLESS: &str = include_str!("tests/harmless.txt");

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with("# ")).flat_map(|line| line.split(" ¦ "))
}

/// Returns a line without the marks `«` and `»`, and with the text between them replaced if
/// `replacement` is given.
fn unmarked(line: &str, replacement: Option<&str>) -> String {
    let mut parts = line.split('«');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (secret, rest) = part.split_once('»').expect("a mark is closed");
        plain.push_str(replacement.unwrap_or(secret));
        plain.push_str(rest);
    }
    plain
}

fn arguments(line: &str) -> Vec<String> {
    shlex::split(line).unwrap_or_else(|| panic!("not a shell line: {line}"))
}

fn stored(arguments: &[String]) -> Vec<String> {
    let argv: String = arguments.iter().flat_map(|argument| [argument, "\0"]).collect();
    let masked = String::from_utf8(Redaction::Mask.apply(argv.as_bytes()).into_owned()).unwrap();
    masked.split_terminator('\0').map(str::to_owned).collect()
}

/// Returns the arguments of a shell that runs the line.
fn sh_arguments(line: &str) -> Vec<String> {
    ["sh", "-c", line].map(str::to_owned).to_vec()
}

/// Checks that each line is stored as it is marked. `to_arguments` turns a line into arguments.
fn check_lines(text: &str, to_arguments: impl Fn(&str) -> Vec<String>) {
    let wrong = lines(text).filter_map(|line| {
        let stored = stored(&to_arguments(&unmarked(line, None)));
        let expected = to_arguments(&unmarked(line, Some("***")));
        (stored != expected).then(|| format!("{line}\n      {}", stored.join(" | ")))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn secrets_are_masked_among_arguments() {
    assert!(lines(SECRETS).count() >= 750);
    check_lines(SECRETS, arguments);
}

#[test]
fn secrets_are_masked_in_shell_scripts() {
    check_lines(SECRETS, sh_arguments);
}

#[test]
fn secrets_are_masked_in_nested_shell_scripts() {
    // The quoting in the output differs, so the test only checks that the secrets are gone.
    for line in lines(SECRETS).filter(|line| !line.contains('\'')) {
        let text = format!("sudo -u me bash -c '{}' && true", unmarked(line, None));
        let stored = stored(&sh_arguments(&text)).concat();
        let secrets = line.split('«').skip(1).filter_map(|part| part.split('»').next());
        for secret in secrets.filter(|secret| secret.len() > 2) {
            assert!(!stored.contains(secret), "{line}: {stored}");
        }
    }
}

#[test]
fn ordinary_commands_are_stored_unchanged() {
    assert!(lines(HARMLESS).count() >= 413);
    check_lines(HARMLESS, arguments);
}

#[test]
fn ordinary_shell_scripts_are_stored_unchanged() {
    check_lines(HARMLESS, sh_arguments);
}

#[test]
fn scripts_of_several_lines_are_masked() {
    for (text, masked) in [
        (
            "set -e\nexport TOKEN=abcd1234\nmysql -uroot -phunter2 <<END\nselect 1\nEND\n",
            "set -e\nexport TOKEN=***\nmysql -uroot -p*** <<END\nselect 1\nEND\n",
        ),
        (
            "cat > ~/.netrc <<E\nmachine h login me password hunter2x\nE",
            "cat > ~/.netrc <<E\nmachine h login me password ***\nE",
        ),
        (
            "kubectl apply -f - <<E\nstringData:\n  password: hunter2x\nE",
            "kubectl apply -f - <<E\nstringData:\n  password: ***\nE",
        ),
        ("f() {\n mysql -p\"$1\"\n}\nf hunter2x db", "f() {\n mysql -p\"$1\"\n}\nf *** db"),
        ("chpasswd <<END\nme:hunter2\nyou:hunter3\nEND\n", "chpasswd <<END\nme:***\nyou:***\nEND\n"),
        ("ssh host <<END\nmysql -phunter2\nEND", "ssh host <<END\nmysql -p***\nEND"),
        ("x=$(vault login hunter2); `redis-cli -a hunter2 get x`", "x=$(vault login ***); `redis-cli -a *** get x`"),
        ("if curl -u me:hunter2 host; then echo ok; fi", "if curl -u me:*** host; then echo ok; fi"),
        ("cat <(curl -u me:hunter2 host)", "cat <(curl -u me:*** host)"),
    ] {
        assert_eq!(stored(&sh_arguments(text))[2], masked);
    }
}

#[test]
fn masking_can_be_switched_off() {
    let argv = b"tool\0--password\0hunter2\0";
    assert!(matches!(Redaction::Keep.apply(argv), Cow::Borrowed(kept) if kept == argv));
    assert!(matches!(Redaction::Keep.apply_to_path(b"https://u:p@h"), Cow::Borrowed(_)));
}

#[test]
fn an_argv_that_is_truncated_or_not_utf8_is_masked() {
    for (argv, masked) in [
        (b"".as_slice(), b"".as_slice()),
        (b"\0\0", b"\0\0"),
        (b"tool\0--password\0hun", b"tool\0--password\0***"),
        (b"tool\0ghp_01", b"tool\0***"),
        (b"t\0--token=\xff\xfe\n\x1b[0m\0\xff\0", b"t\0--token=***\0\xff\0"),
    ] {
        assert_eq!(&*Redaction::Mask.apply(argv), masked, "{argv:?}");
    }
}

#[test]
fn paths_and_messages_are_masked_by_form() {
    for (path, masked) in [
        ("/home/me/project", "/home/me/project"),
        ("/srv/password/key", "/srv/password/key"),
        ("/tmp/https://me:hunter2@host/x", "/tmp/https://me:***@host/x"),
        ("/tmp/ghp_0123456789abcdefghijABCDEFGHIJ012345", "/tmp/***"),
        ("/srv/https:/me:hunter2@host/x", "/srv/https:/me:***@host/x"),
        ("/srv/https:/hunter2@host", "/srv/https:/***@host"),
        ("/srv/npm:/scope@1.2.3", "/srv/npm:/scope@1.2.3"),
        ("mysql -uroot -phunter2", "mysql -uroot -p***"),
        ("failed to run 'tool --password=hunter2'", "failed to run 'tool --password=***'"),
    ] {
        assert_eq!(Redaction::Mask.apply_to_text(path), masked);
    }
}

proptest::proptest! {
    #[test]
    fn the_number_of_arguments_never_changes(argv in "(-{0,2}(password|token|c|u|H|curl|sh|env|API_KEY)?[=: ]?[a-z:/@\"'$()|<;&%\u{0} ]{0,6}){0,8}") {
        let masked = Redaction::Mask.apply(argv.as_bytes());
        proptest::prop_assert_eq!(masked.split(|byte| *byte == 0).count(), argv.split('\0').count());
    }

    #[test]
    fn any_text_is_processed(text in "(mysql|curl|expect|send|<<E|\n|[-=:'\"$`(){}|;&@/ a-z]){0,40}") {
        let argv = format!("sh\0-c\0{text}\0");
        let masked = Redaction::Mask.apply(argv.as_bytes());
        proptest::prop_assert!(masked.ends_with(b"\0"));
    }
}

#[test]
fn a_value_is_masked_if_its_name_or_its_form_is_secret() {
    for (name, value) in [
        ("commit", "4f2a91c0b7d35e8f6a1c2d3e4f5061728394a5b6"),
        ("branch", "feature/token-refresh"),
        ("job", "test: [ruby, 3.3]"),
        ("image", "registry.example.org/team/build:1.2"),
        ("cpu", "AMD EPYC 7B13 @ 2.45GHz"),
        ("run", "17293"),
        ("empty", ""),
        ("umlaut", "Gr\u{f6}\u{df}e"),
    ] {
        assert_eq!(Redaction::Mask.apply_to_value(name, value), value, "{name}");
    }
    for (name, value, masked) in [
        ("token", "abcdef123", "***"),
        ("mirror", "https://me:hunter2@example.org", "https://me:***@example.org"),
        ("note", "ghp_0123456789abcdefghijABCDEFGHIJ012345", "***"),
    ] {
        assert_eq!(Redaction::Mask.apply_to_value(name, value), masked, "{name}");
    }
    assert_eq!(Redaction::Keep.apply_to_value("token", "abcdef123"), "abcdef123");
}
