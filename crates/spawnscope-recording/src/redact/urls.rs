//! Finds credentials in addresses: `https://user:X@host`, `https://X@host`, `redis://:X@host`, and without a scheme `user:X@host:80`.

use std::ops::Range;

use super::spots::Spots;
use super::values::{is_plain, is_reference};

/// Placeholders for the password if the user is the token.
const NO_PASSWORDS: [&str; 7] = ["", "x-oauth-basic", "x-oauth-token", "x", "X", "api_token", "unused"];
/// Schemes in which a user without a password is often a token.
const OF_TOKENS: [&str; 10] = [
    "http",
    "https",
    "git+https",
    "git+http",
    "svn+https",
    "hg+https",
    "pip+https",
    "dav",
    "davs",
    "wss",
];
/// Users without a password that are not tokens.
const USERS: [&str; 8] = ["git", "hg", "svn", "anonymous", "root", "admin", "user", "oauth2"];

/// Words before a mail address, phone number or role that are not a user with a password.
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
/// As `NO_USERS`, unless a port follows.
const HARDLY_USERS: [&str; 9] = [
    "user",
    "group",
    "member",
    "assignee",
    "author",
    "committer",
    "owner",
    "reviewer",
    "deleted",
];

/// Finds credentials in a path, in which the system has collapsed double slashes: `/srv/https:/user:X@host`.
pub(super) fn find_in_path(path: &[u8], spots: &mut Spots) {
    find(path, spots);
    for (at, _) in path.windows(2).enumerate().filter(|(_, window)| window == b":/") {
        let scheme = scheme_before(path, at);
        let is_of_web = OF_TOKENS
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known.as_bytes()));
        if is_of_web && path.get(at + 2) != Some(&b'/') {
            find_login(path, at, at + 2, spots);
        }
    }
}

/// Finds credentials in a text.
pub(super) fn find(text: &[u8], spots: &mut Spots) {
    if !text.contains(&b'@') {
        return;
    }
    let mut done = 0;
    for (at, _) in text.windows(3).enumerate().filter(|(_, window)| window == b"://") {
        if at >= done {
            done = find_login(text, at, at + 3, spots);
        }
    }
    find_bare(text, spots);
}

/// Finds the credentials before the host of an address whose scheme ends at `colon`. Returns where the address ends.
fn find_login(text: &[u8], colon: usize, start: usize, spots: &mut Spots) -> usize {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`<>\\".contains(byte);
    let end = text[start..]
        .iter()
        .position(ends)
        .map_or(text.len(), |length| start + length);
    let login = login_before(text, start..end);
    if let Some(login) = login {
        let scheme = scheme_before(text, colon);
        add_login(text, login, scheme, spots);
    }
    end
}

/// Returns the range before the `@` of the host. A password may contain an unencoded `@` or slash.
fn login_before(text: &[u8], address: Range<usize>) -> Option<Range<usize>> {
    let is_end = |at: &usize| b"/?#".contains(&text[*at]);
    let host_end = address.clone().find(is_end).unwrap_or(address.end);
    let first = address.start..host_end;
    // A comma separates hosts, and a colon may precede a port.
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
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+.-".contains(byte);
    let before = text[..colon].iter().rposition(|byte| !is_scheme(byte));
    &text[before.map_or(0, |before| before + 1)..colon]
}

fn add_login(text: &[u8], login: Range<usize>, scheme: &[u8], spots: &mut Spots) {
    let Some(colon) = text[login.clone()].iter().position(|byte| *byte == b':') else {
        let user = &text[login.clone()];
        let is_of_tokens = OF_TOKENS
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known.as_bytes()));
        let is_user = USERS.iter().any(|known| user.eq_ignore_ascii_case(known.as_bytes()));
        if is_of_tokens && !is_user && !is_plain(user) {
            spots.add(login);
        }
        return;
    };
    add_pair(text, login.start..login.end, login.start + colon, spots);
}

/// Adds the secret of `user:X`, or of `X:` if nothing after the colon can be a password.
pub(super) fn add_pair(text: &[u8], pair: Range<usize>, colon: usize, spots: &mut Spots) {
    let (user, password) = (pair.start..colon, colon + 1..pair.end);
    if NO_PASSWORDS
        .iter()
        .any(|none| text[password.clone()] == *none.as_bytes())
    {
        if !is_reference(&text[user.clone()]) {
            spots.add(user);
        }
    } else if !is_reference(&text[password.clone()]) {
        spots.add(password);
    }
}

/// Finds `user:X@host.name` or `user:X@host:80` as a word, as used by proxies and by tools with an implied scheme.
fn find_bare(text: &[u8], spots: &mut Spots) {
    let mut start = 0;
    for word in text.split_inclusive(|byte| byte.is_ascii_whitespace() || b"\"'`=,;|&<>".contains(byte)) {
        let end = start + word.len();
        // The access method of a CVS server.
        let method = if word.starts_with(b":pserver:") {
            b":pserver:".len()
        } else {
            0
        };
        let (start_of_login, word) = (start + method, &word[method..]);
        if let Some(at) = word.iter().rposition(|byte| *byte == b'@')
            && let Some(colon) = word[..at].iter().position(|byte| *byte == b':')
            && !word[..at].contains(&b'/')
            && (method > 0 || is_login(&word[..colon], word[at + 1..].trim_ascii_end()))
        {
            add_pair(text, start_of_login..start_of_login + at, start_of_login + colon, spots);
        }
        start = end;
    }
}

fn is_login(user: &[u8], host: &[u8]) -> bool {
    let is_word = user
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_.-+%\\".contains(byte));
    let is_among = |names: &[&str]| names.iter().any(|name| user.eq_ignore_ascii_case(name.as_bytes()));
    let Host { is_name, has_port } = Host::of(host);
    !user.is_empty() && is_word && !is_among(&NO_USERS) && (has_port || is_name && !is_among(&HARDLY_USERS))
}

/// The text after an `@`.
struct Host {
    /// Whether it is a name with a dot, or an address. `npm:prettier@3.1` and `alpine:3@sha256:...` have neither.
    is_name: bool,
    has_port: bool,
}

impl Host {
    fn of(text: &[u8]) -> Host {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b".-:".contains(byte);
        let text = text.split(|byte| !is_part(byte)).next().unwrap_or_default();
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
