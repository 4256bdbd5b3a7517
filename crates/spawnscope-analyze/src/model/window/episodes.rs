//! Episodes: spans in which a process launches others and reaps them, and then lives on. Examples
//! are a command typed into a shell, a refresh of an editor, or a request to a server.

use crate::model::launch::Launch;
use crate::model::tree::Forest;
use crate::model::window::WindowSpan;
use spawnscope_data::event::{Nanos, Pid};
use spawnscope_data::rows::Origin;

/// Maximum pause between launches of one episode. A response within this time seems immediate to a
/// person (R. B. Miller, Response time in man-computer conversational transactions, 1968).
const MAX_PAUSE: Nanos = Nanos(100_000_000);

/// A span in which a process launched others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Episode {
    pub span: WindowSpan,
    pub pid: Option<Pid>,
    pub label: Vec<u8>,
    /// Number of launches by the process and its descendants.
    pub launches: u64,
    /// The launch tax of these launches. `None` when it is unknown for all of them.
    pub tax: Option<Nanos>,
}

/// Returns the episodes of all processes that lived on, the largest launch tax first.
pub fn episodes(forest: &Forest<'_>) -> Vec<Episode> {
    let mut episodes: Vec<Episode> = (0..forest.launches.len())
        .filter(|index| lives_on(&forest.launches[*index]))
        .flat_map(|owner| episodes_of(forest, owner))
        .collect();
    episodes.sort_by_key(|episode| (std::cmp::Reverse((episode.tax, episode.launches)), episode.span.from));
    episodes
}

/// Whether a process existed before the recording or was still running at its end, so that its
/// launches form episodes.
fn lives_on(launch: &Launch<'_>) -> bool {
    match launch.origin {
        Origin::Existed | Origin::Orphan => true,
        Origin::Launched | Origin::Command => launch.is_unfinished(),
    }
}

/// Returns the episodes of one process, by time. Leaves out children that were still running at the
/// end, which have episodes of their own.
fn episodes_of(forest: &Forest<'_>, owner: usize) -> Vec<Episode> {
    let mut episodes: Vec<Episode> = Vec::new();
    for child in forest.children(owner) {
        let launch = &forest.launches[*child];
        // Without an instant before the creation, the span begins just before it.
        let before = launch.start().map(|start| Nanos(start.0.saturating_sub(1)));
        let (Some(from), Some(to)) = (launch.instants.prepare.get().or(before), launch.end()) else {
            continue;
        };
        let (launches, tax) = sums_with_descendants(forest, *child);
        match episodes.last_mut() {
            Some(episode) if from.since(episode.span.to) <= MAX_PAUSE => {
                episode.span.to = episode.span.to.max(to);
                episode.launches += launches;
                episode.tax = match (episode.tax, tax) {
                    (Some(tax), Some(more)) => Some(Nanos(tax.0 + more.0)),
                    (known, more) => known.or(more),
                };
            }
            _ => episodes.push(Episode {
                span: WindowSpan { owner: forest.launches[owner].id, from, to },
                pid: forest.launches[owner].pid.get(),
                label: forest.launches[owner].command.label(),
                launches,
                tax,
            }),
        }
    }
    episodes.retain(|episode| episode.span.from < episode.span.to);
    episodes
}

fn sums_with_descendants(forest: &Forest<'_>, top: usize) -> (u64, Option<Nanos>) {
    let (mut launches, mut tax) = (0, None);
    for step in forest.walk(&[top]) {
        launches += 1;
        if let Some(more) = forest.launches[step.index].tax() {
            tax = Some(Nanos(tax.unwrap_or(Nanos(0)).0 + more.0));
        }
    }
    (launches, tax)
}
