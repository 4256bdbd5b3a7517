//! Finds secrets by their form, regardless of the context: tokens with a known prefix, private keys, and URLs that grant access to anyone who
//! knows them.

use std::sync::LazyLock;

use regex::bytes::Regex;

use self::Letters::{Alnum, Base64, Dashed, Dotted, Hex, Upper, Word};
use super::secret_ranges::SecretRanges;

/// The prefix of each kind of token, the characters that follow, and their minimum number. An argv that contains a prefix is searched for secrets.
#[rustfmt::skip]
const TOKENS: &[(&str, Letters, usize)] = &[
    // GitHub, GitLab, Bitbucket, Atlassian
    ("gh[pousr]_", Alnum, 6), ("github_pat_", Word, 6), ("gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|oas|ffct)-", Dashed, 8),
    ("AT(?:ATT|CTT|BB)[0-9A-Za-z]", Base64, 16),
    // Slack, Discord, Telegram
    ("xox[a-z][-.]", Dashed, 6), ("xapp-", Dashed, 6), ("[MNO][A-Za-z0-9_-]{23,27}\\.[A-Za-z0-9_-]{6}\\.", Dashed, 27),
    ("[0-9]{8,10}:AA", Dashed, 30),
    // Clouds
    ("A(?:KIA|SIA|BIA|CCA)", Upper, 16), ("AIza", Dashed, 30), ("ya29\\.", Dashed, 16), ("GOCSPX-", Dashed, 16), ("1//0", Dashed, 30),
    ("do[opr]_v1_", Alnum, 32), ("LTAI", Alnum, 16), ("AKID", Alnum, 20), ("HRKU-", Dashed, 16), ("fo1_", Dashed, 16), (r"FlyV1\x20fm", Base64, 16),
    ("dapi", Hex, 32), ("tskey-", Dashed, 12), ("pul-", Hex, 32), ("hv[sbr]\\.", Dashed, 20), ("s\\.[A-Za-z0-9]", Alnum, 23),
    ("dp\\.(?:pt|st|ct|sa|scim|audit)\\.", Dotted, 16), ("pscale_(?:tkn|pw|oauth)_", Dashed, 16), ("sb[ps]_", Alnum, 20), ("sb_secret_", Dashed, 16),
    ("rnd_", Alnum, 24), ("AGE-SECRET-KEY-1", Upper, 16), ("ops_eyJ", Base64, 16), ("A3-[A-Z0-9]{6}-", Dashed, 16),
    // Machine learning
    ("sk-", Dashed, 12), ("hf_", Alnum, 12), ("gsk_", Alnum, 20), ("r8_", Alnum, 20), ("pplx-", Alnum, 20), ("xai-", Dashed, 20),
    ("lsv2_", Word, 20), ("tvly-", Dashed, 20), ("nvapi-", Dashed, 20),
    // Payment
    ("[sr]k_(?:live|test|prod)_", Alnum, 4), ("whsec_", Base64, 16), ("sq0(?:atp|csp|idp)-", Dashed, 20), ("EAAA", Dashed, 50),
    ("shp(?:at|ss|ca|pa|tka)_", Alnum, 16), ("access_token\\$(?:production|sandbox)\\$", Alnum, 20),
    // Packages
    ("npm_", Alnum, 20), ("pypi-", Dashed, 12), ("rubygems_", Alnum, 16), ("dckr_(?:pat|oat)_", Dashed, 16), ("oy2", Alnum, 43),
    ("cio[A-Za-z0-9]", Alnum, 31), ("CLOJARS_", Alnum, 16),
    // Services
    ("SG\\.", Dotted, 30), ("key-", Hex, 32), ("SK", Hex, 32), ("lin_(?:api|oauth)_", Alnum, 16), ("ntn_", Alnum, 16),
    ("secret_", Alnum, 32), ("fig[dur]_", Dashed, 16), ("gl(?:sa|c)_", Base64, 16), ("NR(?:AK|II|JS|RA)-", Dashed, 16), ("PMAK-", Dashed, 16),
    ("sntry[su]_", Base64, 16), ("EAACEdEose0cBA", Alnum, 8), ("sk\\.eyJ", Dotted, 16), ("sl\\.", Dashed, 60), ("phx_", Alnum, 20),
    ("pat-[a-z]{2}[0-9]-", Dashed, 20), ("p8e-", Alnum, 20), ("AQVN", Dashed, 30), ("y[0-3]_A", Dashed, 30), ("ATATT3", Base64, 16),
    ("api_org_", Alnum, 20), ("fw_", Alnum, 24), ("waka_", Dashed, 30), ("ubtok_|CFPAT-", Dashed, 20),
    ("duffel_(?:live|test)_", Dashed, 20), ("dt0[a-z][0-9]{2}\\.", Dotted, 30), ("live_[a-z]{2}_", Alnum, 20), ("tfp_", Dashed, 30),
    ("[A-Za-z0-9]{14}\\.atlasv1\\.", Dashed, 20),
    // JSON Web Tokens, and other tokens with the same prefix
    ("eyJ[A-Za-z0-9_-]{8,}\\.", Dotted, 4),
];

/// The set of characters that a token consists of.
#[derive(Clone, Copy)]
enum Letters {
    Alnum,
    Upper,
    Hex,
    Word,
    Dashed,
    Dotted,
    Base64,
}

fn contains(letters: Letters, byte: u8) -> bool {
    let punctuation: &[u8] = match letters {
        Upper => return byte.is_ascii_uppercase() || byte.is_ascii_digit(),
        Hex => return byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        Alnum => b"",
        Word => b"_",
        Dashed => b"_-",
        Dotted => b"_.-",
        Base64 => b"_=+/-",
    };
    byte.is_ascii_alphanumeric() || punctuation.contains(&byte)
}

/// Patterns of URLs that contain a secret, and of private keys: the part before the secret, and the secret itself.
const ADDRESSES: &[(&str, &str)] = &[
    (r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/", "[A-Za-z0-9_/-]+"),
    (r"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]+/", "[A-Za-z0-9_-]+"),
    (r"webhook\.office\.com/webhookb2/", r#"[^\s"'\x00]+"#),
    (r"outlook\.office\.com/webhook/", r#"[^\s"'\x00]+"#),
    (r"logic\.azure\.com[^\s?]*\?", r#"[^\s"'\x00]+"#),
    (r"hooks\.zapier\.com/hooks/catch/", r#"[^\s"'\x00]+"#),
    (r"maker\.ifttt\.com/trigger/[^/\s]+/(?:json/)?with/key/", "[A-Za-z0-9_-]+"),
    (r"/bot(?:[0-9]+:)", "[A-Za-z0-9_-]+"),
    (r"chat\.googleapis\.com/v1/spaces/[^?\s]+\?", r#"[^\s"'\x00]+"#),
    (r"jdbc:oracle:[a-z]+:[^/\s@]+/", r#"[^@\s"']+"#),
    (r"hc-ping\.com/", "[A-Za-z0-9/-]+"),
    (r"open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/", "[A-Za-z0-9-]+"),
    (r"api\.pushcut\.io/", "[A-Za-z0-9_-]+"),
    (r"-----BEGIN\ [A-Z0-9\ ]*PRIVATE\ KEY(?:\ BLOCK)?-----", r"[^\x00]*"),
];

fn compile(pattern: &str) -> Regex {
    // The pattern matches bytes, because arguments need not be UTF-8.
    Regex::new(&format!("(?-u){pattern}")).expect("the patterns in this file are valid, as its tests show")
}

/// Matches the prefixes of tokens. Each prefix is a group, so that a match shows which one was found.
static STARTS: LazyLock<Regex> = LazyLock::new(|| {
    let starts: Vec<String> = TOKENS.iter().map(|(start, _, _)| format!("({start})")).collect();
    compile(&format!("\\b(?:{})", starts.join("|")))
});

static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    let alternatives = ADDRESSES.iter().map(|(start, secret)| format!("{start}({secret})"));
    compile(&alternatives.collect::<Vec<_>>().join("|"))
});

/// Returns a pattern that matches every argv with a secret that `find` finds.
pub(super) fn pattern() -> String {
    let tokens = TOKENS.iter().map(|(start, _, _)| format!("\\b(?:{start})"));
    let addresses = ADDRESSES.iter().map(|(start, _)| (*start).to_owned());
    tokens.chain(addresses).collect::<Vec<_>>().join("|")
}

/// Finds tokens, private keys and secret URLs in a text. If the text is truncated, a token at its end may be too short.
pub(super) fn find(text: &[u8], is_truncated: bool, ranges: &mut SecretRanges) {
    for found in STARTS.captures_iter(text) {
        let group = (1..found.len()).find_map(|group| Some((group, found.get(group)?)));
        let Some((group, start)) = group else { continue };
        let (_, letters, min_length) = TOKENS[group - 1];
        let rest = &text[start.end()..];
        let end = rest.iter().position(|byte| !contains(letters, *byte));
        let length = end.unwrap_or(rest.len());
        let token = start.start()..start.end() + length;
        let is_complete = length >= min_length && is_token(&text[token.clone()]);
        if is_complete || is_truncated && token.end == text.len() && length > 0 {
            ranges.add(token);
        }
    }
    for found in ADDRESS.captures_iter(text) {
        let secret = found.iter().skip(1).flatten().next();
        secret.into_iter().for_each(|secret| ranges.add(secret.range()));
    }
}

/// Whether a match is a token. Some prefixes also begin ordinary words: `sk-learn-contrib-estimators`.
fn is_token(found: &[u8]) -> bool {
    const WORD_PREFIXES: [&[u8]; 10] =
        [b"sk-", b"pypi-", b"s.", b"sl.", b"SG.", b"xai-", b"pplx-", b"tvly-", b"waka_", b"key-"];
    /// A piece of at least this length is not an ordinary word.
    const MIN_RANDOM_BYTES: usize = 20;
    let Some(start) = WORD_PREFIXES.iter().find(|start| found.starts_with(start)) else {
        return true;
    };
    let body = &found[start.len()..];
    let mut words = body.split(|byte| !byte.is_ascii_alphanumeric());
    body.iter().any(u8::is_ascii_digit) || words.any(|word| word.len() >= MIN_RANDOM_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_token(text: &str, is_truncated: bool) -> bool {
        let mut ranges = SecretRanges::default();
        find(text.as_bytes(), is_truncated, &mut ranges);
        !ranges.is_empty()
    }

    #[test]
    fn patterns_are_well_formed_and_words_are_not_tokens() {
        for token in
            ["ghp_abcdefghijklmnop", "sk-abcdefghijklmnopqrstuvwxyz", "sk-proj-abc123def456", "eyJhbGciOiJI.eyJz.abc"]
        {
            assert!(has_token(&format!("x {token} y"), false), "{token}");
        }
        assert!(!has_token("x ghp_0123", false), "too short for a token");
        assert!(has_token("x ghp_0123", true), "the rest of the token may be missing");
        for word in [
            "sk-learn-contrib-estimators",
            "pypi-repository-mirror",
            "npm_config_registry",
            "s.startswith",
            "key-value-pairs",
        ] {
            assert!(!has_token(word, false), "{word}");
        }
        compile(&pattern());
    }
}
