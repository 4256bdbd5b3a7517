//! Call sites in outputs: as JSON, and as rows of a report by line or function.

use serde_json::{Map, Value};

use super::json_values::insert_or_null;
use super::page::{PLAIN, Page, QUIET, TITLE, plain, styled};
use super::{text, units, words};
use crate::analyze::explain::report::{Report, Spent};
use crate::analyze::model::external_wait::ExternalWait;
use crate::analyze::path::groups::{Group, THE_RECORDER};
use crate::analyze::sites::callers::{CallSite, CallerCounts};

const MAX_PROGRAMS: usize = 2;

/// Returns a call site as a JSON object. Unknown fields are `null`, as are `program` and `text` if
/// there is a file.
pub(super) fn value(call_site: &CallSite) -> Value {
    let mut object = Map::new();
    insert_or_null(&mut object, "file", call_site.file.as_deref());
    object.insert("line".into(), call_site.line.into());
    insert_or_null(&mut object, "function", call_site.function.as_deref());
    insert_or_null(&mut object, "module", call_site.module.as_deref());
    insert_or_null(&mut object, "program", call_site.program.as_deref());
    insert_or_null(&mut object, "text", call_site.text.as_deref());
    object.insert("language".into(), call_site.language.name().into());
    Value::Object(object)
}

/// Adds the call sites with the most launches, their counts, and the number of launches from other
/// call sites.
pub(super) fn insert_counts(object: &mut Map<String, Value>, counts: &CallerCounts) {
    let callers = counts.largest.iter().map(|(call_site, count)| {
        let mut caller = value(call_site);
        caller["count"] = (*count).into();
        caller
    });
    object.insert("callers".into(), callers.collect());
    object.insert("callers_others".into(), counts.others.into());
    object.insert("callers_unknown".into(), counts.unknown.into());
}

/// Prints the rows of a report by line or function, one sentence each.
pub(super) fn print_rows(page: &mut Page, report: &Report, groups: &[Group]) {
    for group in groups {
        let label = text::escape(&group.label);
        let style = if group.call_site.is_some() { TITLE } else { PLAIN };
        let facts = facts(group, report);
        let width = page.width().saturating_sub(2);
        if text::width(&label) + 2 + text::width(&facts) <= width {
            page.line([plain("  "), styled(style, format!("{label}:")), plain(format!(" {facts}"))]);
        } else {
            page.line([plain("  "), styled(style, format!("{}:", text::truncate(&label, width.saturating_sub(1))))]);
            page.sentence(6, PLAIN, &facts);
        }
    }
    let share = match report.all.critical {
        Some(_) if report.where_the_wall_went.iter().any(|(what, _)| is_outside(what)) => {
            "; the share includes what they launch, without sleeps and other external waits"
        }
        Some(_) => "; the share includes what they launch",
        None => "",
    };
    let legend = format!("in all: the wall time of the launches, summed{share}");
    page.sentence(2, QUIET, &legend);
    let labels = groups.iter().flat_map(|group| {
        let launched = group.launched.iter().take(MAX_PROGRAMS).map(|(label, _)| label.as_slice());
        launched.chain((group.label == THE_RECORDER).then_some(group.label.as_slice()))
    });
    for meaning in words::explain_parentheses(labels) {
        page.sentence(2, QUIET, &meaning);
    }
    if report.groups.iter().all(|group| group.call_site.is_none()) {
        page.sentence(2, QUIET, "this recording does not contain call sites");
    }
}

fn is_outside(what: &Spent) -> bool {
    matches!(what, Spent::ExternalWait(what, _) if *what != ExternalWait::Recorder)
}

/// Formats a group's launches, time and share: `71,000 x dirname, 512 s in all, 84.0 % of the
/// critical path`.
fn facts(group: &Group, report: &Report) -> String {
    let mut facts: Vec<String> = group
        .launched
        .iter()
        .take(MAX_PROGRAMS)
        .map(|(command, count)| format!("{} x {}", units::count(*count), text::escape(command)))
        .collect();
    let more: u64 = group.launched.iter().skip(MAX_PROGRAMS).map(|(_, count)| count).sum();
    if more > 0 {
        facts.push(format!("{} more", units::count(more)));
    }
    facts.push(format!("{} in all", units::time(group.inclusive.total)));
    if let Some(critical) = group.inclusive.critical {
        facts.push(format!("{} of the critical path", units::percent(critical, report.wall)));
    }
    facts.join(", ")
}
