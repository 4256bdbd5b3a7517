//! Makes equal titles distinct by adding the call site or the command.

use std::collections::{HashMap, HashSet};

use crate::advice::context::name;
use crate::advice::{Advice, Advices};

/// Maximum number of characters shown of a command.
const MOST_CHARACTERS: usize = 60;

/// Adds the call site or the command to titles that occur more than once, where that makes them distinct.
pub(super) fn tell_apart(advices: &mut Advices) {
    let not_worth = advices.not_worth.iter_mut().map(|(_, advice)| advice);
    let mut by_title: HashMap<String, Vec<&mut Advice>> = HashMap::new();
    for advice in advices.worth.iter_mut().chain(not_worth) {
        by_title.entry(advice.finding.title.clone()).or_default().push(advice);
    }
    for mut alike in by_title.into_values().filter(|alike| alike.len() > 1) {
        let additions = [line, command].into_iter().find_map(|of| differing(&alike, of));
        for (advice, addition) in alike.iter_mut().zip(additions.unwrap_or_default()) {
            advice.finding.title.push_str(&addition);
        }
    }
}

/// Returns one addition per advice, or `None` when one is missing or two are equal.
fn differing(alike: &[&mut Advice], of: fn(&Advice) -> Option<String>) -> Option<Vec<String>> {
    let additions: Vec<String> = alike.iter().map(|advice| of(advice)).collect::<Option<_>>()?;
    let distinct: HashSet<&String> = additions.iter().collect();
    (distinct.len() == alike.len()).then_some(additions)
}

/// Returns the most frequent call site.
fn line(advice: &Advice) -> Option<String> {
    let (call_site, _) = advice.callers.most.first()?;
    Some(format!(", at {}", name(&call_site.short_label())))
}

fn command(advice: &Advice) -> Option<String> {
    let words = &advice.finding.example;
    let command: String = name(&words.join(&b' ')).chars().take(MOST_CHARACTERS).collect();
    (!words.is_empty()).then(|| format!(": {command}"))
}
