//! Secrets that must be masked, and ordinary arguments that must not.

use super::*;

/// Masks arguments that are separated by `|`.
fn masked(arguments: &str) -> String {
    let argv: String = arguments.split('|').flat_map(|argument| [argument, "\0"]).collect();
    let masked = Redaction::Mask.apply(argv.as_bytes()).into_owned();
    String::from_utf8(masked)
        .unwrap()
        .strip_suffix('\0')
        .unwrap()
        .replace('\0', "|")
}

#[test]
fn secrets_are_masked_and_arguments_keep_their_places() {
    for (typed, stored) in [
        ("tool|--password|hunter2|file", "tool|--password|***|file"),
        ("tool|--password=hunter2 and more", "tool|--password=***"),
        ("tool|-password|hunter2", "tool|-password|***"),
        ("tool|--db-password|x y|z", "tool|--db-password|***|z"),
        ("tool|--token|abc", "tool|--token|***"),
        (
            "npm|--//registry.npmjs.org/:_authToken=abc",
            "npm|--//registry.npmjs.org/:_authToken=***",
        ),
        ("npm|--authToken=abc", "npm|--authToken=***"),
        ("env|API_KEY=abc|make", "env|API_KEY=***|make"),
        ("env|PGPASSWORD=abc|psql", "env|PGPASSWORD=***|psql"),
        ("env|SMTP_PASS=abc|x", "env|SMTP_PASS=***|x"),
        ("make|AWS_SECRET_ACCESS_KEY=a=b", "make|AWS_SECRET_ACCESS_KEY=***"),
        (
            "docker|run|-e|POSTGRES_PASSWORD=x|pg",
            "docker|run|-e|POSTGRES_PASSWORD=***|pg",
        ),
        ("docker|run|--env=NPM_TOKEN=x|pg", "docker|run|--env=NPM_TOKEN=***|pg"),
        ("mvn|-Dsonar.token=abc", "mvn|-Dsonar.token=***"),
        ("cc|-DDB_PASSWORD=\"abc\"", "cc|-DDB_PASSWORD=***"),
        (
            "curl|-H|Authorization: Bearer abc.def|u",
            "curl|-H|Authorization: Bearer ***|u",
        ),
        ("curl|-HAuthorization: Basic YWJj", "curl|-HAuthorization: Basic ***"),
        ("curl|-H|PRIVATE-TOKEN: abc", "curl|-H|PRIVATE-TOKEN: ***"),
        ("curl|-H|X-Api-Key: abc", "curl|-H|X-Api-Key: ***"),
        ("curl|-H|Cookie: session=abc; a=b", "curl|-H|Cookie: ***"),
        ("curl|-u|me:secret|host", "curl|-u|me:***|host"),
        ("/usr/bin/curl|-ume:secret|host", "/usr/bin/curl|-ume:***|host"),
        (
            "curl|https://h/?access_token=abc&x=1",
            "curl|https://h/?access_token=***",
        ),
        (
            "curl|https://me:secret@h/?token=abc",
            "curl|https://me:***@h/?token=***",
        ),
        (
            "curl|-d|{\"user\": \"me\", \"password\": \"a b\"}",
            "curl|-d|{\"user\": \"me\", \"password\": ***}",
        ),
        ("git|clone|https://me:secret@host/x", "git|clone|https://me:***@host/x"),
        ("git|clone|https://me:sec@ret@host/x", "git|clone|https://me:***@host/x"),
        ("x|redis://:secret@host:6379/0", "x|redis://:***@host:6379/0"),
        ("mysql|-u|root|-psecret|db", "mysql|-u|root|-p***|db"),
        ("sshpass|-p|secret|ssh|host", "sshpass|-p|***|ssh|host"),
        ("openssl|rsa|-passin|pass:secret", "openssl|rsa|-passin|pass:***"),
        ("x|ghp_0123456789abcdefghijABCDEFGHIJ012345", "x|***"),
        ("x|--key=glpat-0123456789abcdefghij", "x|--key=***"),
        ("x|AKIAIOSFODNN7EXAMPLE", "x|***"),
        ("x|xoxb-123456789012-abcdef", "x|***"),
        ("x|eyJhbGciOiJI.eyJzdWIiOiIx.abc", "x|***"),
        ("x|-----BEGIN RSA PRIVATE KEY-----\nMII\n", "x|***"),
        ("sh|-c|curl --token abc --fail", "sh|-c|curl --token *** --fail"),
        ("sh|-c|PASSWORD='a b' make all", "sh|-c|PASSWORD=*** make all"),
        (
            "bash|-lc|x; export API_KEY=abc; make",
            "bash|-lc|x; export API_KEY=***; make",
        ),
        (
            "sh|-c|curl -H \"Authorization: Bearer abc\" https://u:p@h/x",
            "sh|-c|curl -H \"Authorization: Bearer ***\" https://u:***@h/x",
        ),
    ] {
        assert_eq!(masked(typed), stored, "{typed}");
    }
}

#[test]
fn ordinary_commands_are_stored_as_they_are() {
    for typed in [
        "cc|-D_FORTIFY_SOURCE=2|-O2|-c|tokenizer.c|-o|tokenizer.o",
        "opt|--passes=3|-passes=default<O2>",
        "cc|-DEND_TOKEN=258|-DSECRET=int",
        "cc|-DHAVE_GETPASSWD=1",
        "ffmpeg|-pass|1|-passlogfile|log",
        "make|TOKENS=5|KEYMAP=us|key=value",
        "ssh-keygen|-t|ed25519|-f|key",
        "ssh|-i|/home/me/.ssh/id_ed25519|git@host",
        "git|clone|ssh://git@host:22/x",
        "git|clone|git@github.com:me/token.git",
        "curl|http://host:8080/@scope/package",
        "skopeo|copy|docker://alpine:3.18@sha256:0123456789abcdef",
        "docker|build|--secret|id=npm,src=/home/me/.npmrc|.",
        "gh|auth|login|--with-token|--hostname|host",
        "tool|--no-password|file",
        "tool|--password-file|/etc/x|--token-file=/etc/y",
        "tool|--token|--verbose",
        "tool|--max-tokens|4096",
        "tool|--require-token=true",
        "python3|-c|print('the token is here: ' + key)",
        "sh|-c|test \"$PASSWORD\" = \"\" && echo no password given",
        "sh|-c|curl --token $TOKEN",
        "sed|s/password/passphrase/",
        "grep|-r|Authorization|src/cookie.rs",
        "gcc|-fsanitize=address|-Wl,--as-needed|-lcrypto|secret.o",
        "sort|-k|2|--key=2,3",
    ] {
        assert_eq!(masked(typed), typed);
    }
}

#[test]
fn redaction_can_be_switched_off() {
    let argv = b"tool\0--password\0hunter2\0";
    assert!(matches!(Redaction::Keep.apply(argv), Cow::Borrowed(kept) if kept == argv));
}

#[test]
fn argv_that_is_cut_or_not_text_is_no_trouble() {
    assert_eq!(&*Redaction::Mask.apply(b""), b"");
    assert_eq!(
        &*Redaction::Mask.apply(b"tool\0--password\0hun"),
        b"tool\0--password\0***"
    );
    assert_eq!(
        &*Redaction::Mask.apply(b"t\0--token=\xff\xfe\n\x1b[0m\0\xff\0"),
        b"t\0--token=***\0\xff\0"
    );
}

proptest::proptest! {
    #[test]
    fn the_number_of_arguments_never_changes(argv in "(-{0,2}(password|token|c|u|API_KEY)?[=: ]?[a-z:/@\"'\u{0}]{0,6}){0,8}") {
        let masked = Redaction::Mask.apply(argv.as_bytes());
        let count = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == 0).count();
        proptest::prop_assert_eq!(count(&masked), count(argv.as_bytes()));
    }
}
