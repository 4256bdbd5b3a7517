//! Titles that read alike are told apart: by the line that asked, or else by what was launched.

use std::collections::{HashMap, HashSet};

use super::context::name;
use super::{Advice, Advices};

/// Characters of a command that are shown.
const MOST_CHARACTERS: usize = 60;

/// Adds to titles that several have what these differ in, if they do.
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

/// One for each, when all have one and no two have the same.
fn differing(alike: &[&mut Advice], of: fn(&Advice) -> Option<String>) -> Option<Vec<String>> {
    let additions: Vec<String> = alike.iter().map(|advice| of(advice)).collect::<Option<_>>()?;
    let distinct: HashSet<&String> = additions.iter().collect();
    (distinct.len() == alike.len()).then_some(additions)
}

/// The line that asked for most.
fn line(advice: &Advice) -> Option<String> {
    let (call_site, _) = advice.callers.most.first()?;
    Some(format!(", at {}", name(&call_site.short_label())))
}

fn command(advice: &Advice) -> Option<String> {
    let words = &advice.finding.example;
    let command: String = name(&words.join(&b' ')).chars().take(MOST_CHARACTERS).collect();
    (!words.is_empty()).then(|| format!(": {command}"))
}
