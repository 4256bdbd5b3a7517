//! Finds credentials in URLs: `https://user:X@host`, `https://X@host`, `redis://:X@host`, and
//! without a scheme, `user:X@host:80`.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::compile;
use super::names::List;
use super::values::{is_plain, is_reference};
use super::words::Found;

static NO_PASSWORDS: List = List::named("no passwords");
static TOKEN_SCHEMES: List = List::named("token schemes");
static USERS: List = List::named("plain users");
static NO_USERS: List = List::named("no users");
static UNLIKELY_USERS: List = List::named("unlikely users");

/// A scheme, and the rest of the address.
static URL: LazyLock<Regex> = LazyLock::new(|| compile(r#"([A-Za-z0-9+.\-]*):/(/?)([^\s"'`<>\\]*)"#));
/// A user, a secret and a host as a whole word. A Windows domain may precede the user. `:pserver:`
/// is the access method of a CVS server.
static LOGIN: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r#"(?:^|[\s"'`=,;|&<>])(:pserver:)?(?:[A-Za-z0-9_.\-]+/)?([A-Za-z0-9_.\-+%\\]+):([^\s"'`=,;|&<>/]*)@([^\s"'`=,;|&<>@]*)"#,
    )
});
/// A host name or an address, and a port.
static HOST: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"^(?:([A-Za-z0-9.\-]+\.[A-Za-z]{2,}|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+)|[A-Za-z0-9.\-]+)(:[0-9]{2,})?(?:[^A-Za-z0-9.:\-]|$)",
    )
});

/// Finds credentials in a text. In a path, the two slashes of a URL may have been collapsed to one.
pub(super) fn find(text: &[u8], found: &mut Found) {
    if !text.contains(&b'@') {
        return;
    }
    for captures in URL.captures_iter(text) {
        let [scheme, slash, address] = [1, 2, 3].map(|group| captures.get(group).map_or(0..0, |part| part.range()));
        let has_token = TOKEN_SCHEMES.has(&text[scheme]);
        if (!slash.is_empty() || has_token)
            && let Some(login) = login_before(text, address)
        {
            match text[login.clone()].iter().position(|byte| *byte == b':') {
                Some(colon) => add_pair(text, login.clone(), login.start + colon, found),
                None if has_token && !USERS.has(&text[login.clone()]) && !is_plain(&text[login.clone()]) => {
                    found.add(login);
                }
                None => {}
            }
        }
    }
    find_without_scheme(text, found);
}

/// Returns the range before the `@` of the host. A password may contain an unencoded `@` or slash.
fn login_before(text: &[u8], address: Range<usize>) -> Option<Range<usize>> {
    let host_end = address.clone().find(|at| b"/?#".contains(&text[*at])).unwrap_or(address.end);
    let first = address.start..host_end;
    // If there is no `@` before the first slash, the text after the colon may be a port, or a
    // password that contains a slash.
    let login = match text[first.clone()].iter().rposition(|byte| *byte == b'@') {
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

/// Adds the secret in `user:X`, or in `X:` if the text after the colon is not a password.
pub(super) fn add_pair(text: &[u8], pair: Range<usize>, colon: usize, found: &mut Found) {
    let (user, password) = (pair.start..colon, colon + 1..pair.end);
    let value = if password.is_empty() || NO_PASSWORDS.has(&text[password.clone()]) { user } else { password };
    if is_reference(&text[value.clone()]) {
        found.add_references(&text[value]);
    } else {
        found.add(value);
    }
}

/// Finds `user:X@host.name` and `user:X@host:80`, which are used for proxies and by tools with an
/// implied scheme.
fn find_without_scheme(text: &[u8], found: &mut Found) {
    for captures in LOGIN.captures_iter(text) {
        let (Some(user), Some(password), Some(host)) = (captures.get(2), captures.get(3), captures.get(4)) else {
            continue;
        };
        let host = HOST.captures(host.as_bytes());
        let is_name = host.as_ref().is_some_and(|host| host.get(1).is_some());
        let has_port = host.as_ref().is_some_and(|host| host.get(2).is_some());
        let is_user = !NO_USERS.has(user.as_bytes()) && (has_port || is_name && !UNLIKELY_USERS.has(user.as_bytes()));
        if is_user || captures.get(1).is_some() {
            add_pair(text, user.start()..password.end(), user.end(), found);
        }
    }
}
