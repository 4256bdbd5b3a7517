//! Finds secrets by their form, regardless of the context: tokens with a known prefix, words that
//! only a generator writes, private keys, and URLs that grant access to anyone who knows them.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::compile;
use super::values::is_key_by_entropy;
use super::words::Found;

/// Prefixes of tokens whose other characters need not look random, the characters that follow, and
/// their minimum number.
const TOKENS: &[(&str, &str, usize)] = &[
    (
        r"gh[pousr]_|AKID|LTAI|npm_|sb[ps]_|rnd_|gsk_|r8_|lin_(?:api|oauth)_|ntn_|rubygems_|hf_|dapi|pplx-|do[opr]_v1_",
        "[A-Za-z0-9]",
        16,
    ),
    (r"A(?:KIA|SIA|BIA|CCA)|AGE-SECRET-KEY-1", "[A-Z0-9]", 16),
    (
        r"[sr]k_(?:live|test|prod)_|whsec_|github_pat_|gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|oas|ffct|sa|c)[-_]",
        "[A-Za-z0-9_-]",
        4,
    ),
    (
        r"xox[a-z][-.]|xapp-|dckr_(?:pat|oat)_|tskey-|hv[sbr]\.|dp\.(?:pt|st|ct|sa|scim|audit)\.|sha256~",
        "[A-Za-z0-9_.-]",
        6,
    ),
    (
        r"[0-9]{8,10}:AA|AIza|ya29\.|GOCSPX-|1//0|HRKU-|fo1_|pscale_[a-z]+_|sb_secret_|nvapi-|sq0[a-z]{3}-|NR[A-Z]{2}-|PMAK-|CFPAT-",
        "[A-Za-z0-9_-]",
        16,
    ),
    // Some prefixes also begin ordinary words, so that a digit or a long piece must follow:
    // `sk-learn-contrib-estimators`.
    (r"(?:sk-|pypi-|SG\.|sl\.|xai-|tvly-|lsv2_|phx_|fw_|waka_)(?:[A-Za-z_.-]*[0-9]|[A-Za-z]{20})", "[A-Za-z0-9_.-]", 6),
    (r"eyJ[A-Za-z0-9_-]{8,}\.", "[A-Za-z0-9_.-]", 4),
    (r"-----BEGIN\x20[A-Z0-9\x20]*PRIVATE\x20KEY(?:\x20BLOCK)?-----", r"[^\x00]", 0),
];
/// The part of a URL before a secret, and the secret itself.
const ADDRESSES: &[(&str, &str)] = &[
    (r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/", "[A-Za-z0-9_/-]+"),
    (r"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]+/", "[A-Za-z0-9_-]+"),
    (r"webhook\.office\.com/webhookb2/|outlook\.office\.com/webhook/", r#"[^\s"'\x00]+"#),
    (r"logic\.azure\.com[^\s?]*\?|chat\.googleapis\.com/v1/spaces/[^?\s]+\?", r#"[^\s"'\x00]+"#),
    (r"hooks\.zapier\.com/hooks/catch/|hc-ping\.com/|api\.pushcut\.io/", "[A-Za-z0-9/_-]+"),
    (r"maker\.ifttt\.com/trigger/[^/\s]+/(?:json/)?with/key/|/bot[0-9]+:|/open-apis/bot/v2/hook/", "[A-Za-z0-9_-]+"),
    (r"jdbc:oracle:[a-z]+:[^/\s@]+/", r#"[^@\s"']+"#),
];

/// Returns a pattern that matches every text with a token of a known prefix, a key or a secret URL.
pub(super) fn pattern() -> String {
    let tokens = TOKENS.iter().map(|(start, _, _)| format!("\\b(?:{start})|(?:{start})$"));
    let addresses = ADDRESSES.iter().map(|(start, _)| format!("(?:{start})"));
    tokens.chain(addresses).collect::<Vec<_>>().join("|")
}

fn any_of(alternatives: impl Iterator<Item = String>) -> Regex {
    compile(&format!("(?-x:{})", alternatives.collect::<Vec<_>>().join("|")))
}

static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    any_of(
        TOKENS.iter().map(|(start, rest, min)| format!(r"(?:\b|^)(?:{start})(?:{rest}){{{min},}}[A-Za-z0-9_=+/.-]*")),
    )
});
/// A token at the end of a truncated text, which may be too short.
static TRUNCATED: LazyLock<Regex> =
    LazyLock::new(|| any_of(TOKENS.iter().map(|(start, _, _)| format!(r"\b(?:{start})[A-Za-z0-9_=+/.-]+$"))));
static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| any_of(ADDRESSES.iter().map(|(start, secret)| format!("(?:{start})({secret})"))));

/// Finds tokens, private keys and secret URLs in a text. If the text is truncated, a token at its
/// end may be too short.
pub(super) fn find(text: &[u8], is_truncated: bool, found: &mut Found) {
    TOKEN.find_iter(text).for_each(|token| found.add(token.range()));
    if is_truncated {
        TRUNCATED.find_iter(text).for_each(|token| found.add(token.range()));
    }
    for captures in ADDRESS.captures_iter(text) {
        captures.iter().skip(1).flatten().for_each(|secret| found.add(secret.range()));
    }
    keys(text).for_each(|key| found.add(key));
}

/// Whether a text may contain a word that only a generator writes.
pub(super) fn has_key(text: &[u8]) -> bool {
    keys(text).next().is_some()
}

fn keys(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let is_other = |byte: &u8| !(byte.is_ascii_alphanumeric() || b"_+/.:@~%$-".contains(byte));
    let mut start = 0;
    text.split(is_other).filter_map(move |piece| {
        let range = start..start + piece.len();
        start = range.end + 1;
        is_key(piece).then_some(range)
    })
}

/// Whether a piece of a text is long enough for a key, and no path, host name or UUID.
fn is_key(piece: &[u8]) -> bool {
    const MIN_BYTES: usize = 20;
    let is_uuid = |piece: &[u8]| piece[8] == b'-' && piece[13] == b'-';
    piece.len() >= MIN_BYTES
        && !is_uuid(piece)
        && !piece.iter().any(|byte| b".:@~%$/".contains(byte))
        && is_key_by_entropy(piece)
}
