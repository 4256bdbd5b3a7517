//! Finds credentials in URLs: `https://user:X@host`, `https://X@host`, `redis://:X@host`, and without a scheme, `user:X@host:80`.

use std::ops::Range;

use super::secret_ranges::SecretRanges;
use super::values::{is_plain, is_reference};

/// Placeholders for a password. The user is then the token.
const NO_PASSWORDS: [&str; 7] = ["", "x-oauth-basic", "x-oauth-token", "x", "X", "api_token", "unused"];
/// Schemes of URLs in which a user without a password is often a token.
const TOKEN_SCHEMES: [&str; 10] =
    ["http", "https", "git+https", "git+http", "svn+https", "hg+https", "pip+https", "dav", "davs", "wss"];
/// Users without a password that are not tokens.
const USERS: [&str; 8] = ["git", "hg", "svn", "anonymous", "root", "admin", "user", "oauth2"];

/// Words before a mail address, phone number or role, which are not a user with a password.
const NO_USERS: [&str; 16] = [
    "mailto",
    "acct",
    "sip",
    "sips",
    "xmpp",
    "from",
    "to",
    "cc",
    "bcc",
    "reply-to",
    "email",
    "mail",
    "upn",
    "serviceaccount",
    "domain",
    "principal",
];
/// Words that are a user only if a port follows.
const UNLIKELY_USERS: [&str; 9] =
    ["user", "group", "member", "assignee", "author", "committer", "owner", "reviewer", "deleted"];

/// Finds credentials in a path, whose double slashes may have been collapsed: `/srv/https:/user:X@host`.
pub(super) fn find_in_path(path: &[u8], ranges: &mut SecretRanges) {
    find(path, ranges);
    for (at, _) in path.windows(2).enumerate().filter(|(_, window)| window == b":/") {
        let scheme = scheme_before(path, at);
        let is_known = TOKEN_SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known.as_bytes()));
        if is_known && path.get(at + 2) != Some(&b'/') {
            find_login(path, at, at + 2, ranges);
        }
    }
}

/// Finds credentials in a text.
pub(super) fn find(text: &[u8], ranges: &mut SecretRanges) {
    if !text.contains(&b'@') {
        return;
    }
    let mut done = 0;
    for (at, _) in text.windows(3).enumerate().filter(|(_, window)| window == b"://") {
        if at >= done {
            done = find_login(text, at, at + 3, ranges);
        }
    }
    find_without_scheme(text, ranges);
}

/// Finds the credentials before the host of a URL whose scheme ends at `colon`. Returns where the URL ends.
fn find_login(text: &[u8], colon: usize, start: usize, ranges: &mut SecretRanges) -> usize {
    let end = text[start..]
        .iter()
        .position(|byte| byte.is_ascii_whitespace() || b"\"'`<>\\".contains(byte))
        .map_or(text.len(), |length| start + length);
    if let Some(login) = login_before(text, start..end) {
        let scheme = scheme_before(text, colon);
        add_login(text, login, scheme, ranges);
    }
    end
}

/// Returns the range before the `@` of the host. A password may contain an unencoded `@` or slash.
fn login_before(text: &[u8], address: Range<usize>) -> Option<Range<usize>> {
    let host_end = address.clone().find(|at| b"/?#".contains(&text[*at])).unwrap_or(address.end);
    let first = address.start..host_end;
    // If there is no `@` before the first slash, the text after the colon may be a port, or a password that contains a slash.
    let at = text[first.clone()].iter().rposition(|byte| *byte == b'@');
    let login = match at {
        Some(at) => first.start..first.start + at,
        None => {
            let colon = text[first.clone()].iter().position(|byte| *byte == b':')?;
            let port = &text[first.start + colon + 1..first.end];
            let at = text[address.clone()].iter().rposition(|byte| *byte == b'@')?;
            let is_port = port.is_empty() || port.iter().all(u8::is_ascii_digit);
            let is_list = text[first.end..address.start + at].contains(&b'?');
            (!is_port && !is_list).then_some(address.start..address.start + at)?
        }
    };
    // `docker://alpine:3.18@sha256:...` is not a login.
    let host = &text[login.end + 1..address.end];
    (!host.starts_with(b"sha256:") && !host.starts_with(b"sha512:")).then_some(login)
}

fn scheme_before(text: &[u8], colon: usize) -> &[u8] {
    let before = text[..colon].iter().rposition(|byte| !byte.is_ascii_alphanumeric() && !b"+.-".contains(byte));
    &text[before.map_or(0, |before| before + 1)..colon]
}

fn add_login(text: &[u8], login: Range<usize>, scheme: &[u8], ranges: &mut SecretRanges) {
    let Some(colon) = text[login.clone()].iter().position(|byte| *byte == b':') else {
        let user = &text[login.clone()];
        if is_among(scheme, &TOKEN_SCHEMES) && !is_among(user, &USERS) && !is_plain(user) {
            ranges.add(login);
        }
        return;
    };
    add_pair(text, login.start..login.end, login.start + colon, ranges);
}

/// Adds the secret in `user:X`, or in `X:` if the text after the colon is not a password.
pub(super) fn add_pair(text: &[u8], pair: Range<usize>, colon: usize, ranges: &mut SecretRanges) {
    let (user, password) = (pair.start..colon, colon + 1..pair.end);
    if NO_PASSWORDS.iter().any(|none| text[password.clone()] == *none.as_bytes()) {
        if !is_reference(&text[user.clone()]) {
            ranges.add(user);
        }
    } else if !is_reference(&text[password.clone()]) {
        ranges.add(password);
    }
}

/// Finds `user:X@host.name` and `user:X@host:80` as whole words, which are used for proxies and by tools with an implied scheme.
fn find_without_scheme(text: &[u8], ranges: &mut SecretRanges) {
    let mut start = 0;
    for word in text.split_inclusive(|byte| byte.is_ascii_whitespace() || b"\"'`=,;|&<>".contains(byte)) {
        let end = start + word.len();
        // `:pserver:` is the access method of a CVS server.
        let method = if word.starts_with(b":pserver:") { b":pserver:".len() } else { 0 };
        let (login_start, word) = (start + method, &word[method..]);
        if let Some(at) = word.iter().rposition(|byte| *byte == b'@')
            && let Some(colon) = word[..at].iter().position(|byte| *byte == b':')
            && !word[..at].contains(&b'/')
            && (method > 0 || is_login(&word[..colon], word[at + 1..].trim_ascii_end()))
        {
            add_pair(text, login_start..login_start + at, login_start + colon, ranges);
        }
        start = end;
    }
}

fn is_login(user: &[u8], host: &[u8]) -> bool {
    let is_word = user.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.-+%\\".contains(byte));
    let Host { is_name, has_port } = Host::parse(host);
    !user.is_empty()
        && is_word
        && !is_among(user, &NO_USERS)
        && (has_port || is_name && !is_among(user, &UNLIKELY_USERS))
}

fn is_among(word: &[u8], list: &[&str]) -> bool {
    list.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

/// What the text after an `@` looks like.
struct Host {
    /// Whether the text begins with a domain name or an IPv4 address, unlike in `npm:prettier@3.1` and `alpine:3@sha256:...`.
    is_name: bool,
    has_port: bool,
}

impl Host {
    fn parse(text: &[u8]) -> Host {
        let mut words = text.split(|byte| !byte.is_ascii_alphanumeric() && !b".-:".contains(byte));
        let text = words.next().unwrap_or_default();
        let mut parts = text.splitn(2, |byte| *byte == b':');
        let (name, port) = (parts.next().unwrap_or_default(), parts.next());
        let top = name.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
        let has_domain = name.contains(&b'.') && top.len() > 1 && top.iter().all(u8::is_ascii_alphabetic);
        let is_address = name.split(|byte| *byte == b'.').count() == 4
            && name.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
        Host {
            is_name: has_domain || is_address,
            has_port: !name.is_empty()
                && port.is_some_and(|port| port.len() > 1 && port.iter().all(u8::is_ascii_digit)),
        }
    }
}
