//! Ids of findings, by which a program finds the same cure at the same place in the next recording,
//! and knows which cures are done.
//!
//! An id is the rule and a hash of the file, the function, and the program that is launched, with
//! its options. Counts, times, line numbers and other arguments are not part of it, so it survives
//! edits elsewhere in the file, and launches in another order. Findings that have all of these in
//! common are numbered in the order of their lines.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::json_values::hex;
use crate::analyze::compare::diff::normalise::normalise;
use crate::analyze::explain::advice::{Advice, AdviceList};
use crate::analyze::model::launch::base_name;

const HASH_BYTES: usize = 4;

/// What distinguishes findings with the same rule and hash.
type Place<'a> = (Option<&'a [u8]>, Option<u32>, Vec<Vec<u8>>);

pub(super) struct FindingIds<'a>(BTreeMap<String, Vec<Place<'a>>>);

impl<'a> FindingIds<'a> {
    pub(super) fn of(advices: &'a AdviceList) -> FindingIds<'a> {
        let mut places: BTreeMap<String, Vec<Place<'_>>> = BTreeMap::new();
        let all = advices.worth.iter().chain(advices.not_worth.iter().map(|(_, advice)| advice));
        for advice in all.flat_map(|advice| std::iter::once(advice).chain(&advice.alternatives)) {
            places.entry(rule_and_hash(advice)).or_default().push(place(advice));
        }
        places.values_mut().for_each(|places| {
            places.sort();
            places.dedup();
        });
        FindingIds(places)
    }

    pub(super) fn get(&self, advice: &Advice) -> String {
        let id = rule_and_hash(advice);
        let position = self.0.get(&id).and_then(|places| places.binary_search(&place(advice)).ok());
        match position.unwrap_or_default() {
            0 => id,
            position => format!("{id}-{}", position + 1),
        }
    }
}

fn rule_and_hash(advice: &Advice) -> String {
    let site = advice.callers.largest.first().map(|(site, _)| site);
    let names = site.map(|site| [site.file.as_deref().map(base_name), site.function.as_deref(), site.text.as_deref()]);
    let program = advice.launched.first().map(|(program, _)| program.as_slice());
    let mut hash = Sha256::new();
    let names = names.into_iter().flatten().chain([program]).map(Option::unwrap_or_default);
    for name in names.chain(options(&advice.finding.example)) {
        hash.update(normalise(name));
        hash.update([0]);
    }
    format!("{}-{}", advice.finding.rule, hex(&hash.finalize()[..HASH_BYTES]))
}

/// Returns the subcommand and the options of a command line. Other arguments are often the item of
/// a loop.
fn options(arguments: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    let is_subcommand = |at: usize, word: &[u8]| at == 1 && word.iter().all(u8::is_ascii_lowercase);
    let words = arguments.iter().map(Vec::as_slice).enumerate().skip(1);
    words.filter(move |(at, word)| word.starts_with(b"-") || is_subcommand(*at, word)).map(|(_, word)| word)
}

fn place(advice: &Advice) -> Place<'_> {
    let site = advice.callers.largest.first().map(|(site, _)| site);
    let example = advice.finding.example.iter().map(|argument| normalise(argument)).collect();
    (site.and_then(|site| site.file.as_deref()), site.and_then(|site| site.line), example)
}
