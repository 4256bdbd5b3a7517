//! The places of all launches of a recording, each told once, and which of them asked for most launches.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::call_site::{CallSite, Detail};
use crate::analyze::launch::base_name;
use crate::analyze::tree::Forest;
use crate::analyze::whatif::changes::command_of;
use crate::record::reader::StackId;

/// Places told of one set of launches.
const MOST_TOLD: usize = 10;

/// Scripts given with `-c` that begin with the same word and are told each.
const MOST_ALIKE: u32 = 4;

/// Where each launch of a recording was asked for.
#[derive(Clone, Debug, Default)]
pub struct Callers {
    call_sites: Vec<CallSite>,
    /// By the launch's index.
    of_launch: Vec<Requester>,
}

/// What a place is found from: both chains, the program that ran the script, and the script that it was given with `-c`.
type Chains<'a> = (Option<StackId>, Option<StackId>, &'a [u8], Option<&'a [u8]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requester {
    /// The recorder asked for the command, and nobody for what existed before.
    ByNobody,
    Unknown,
    /// A position among the places.
    At(u32),
}

impl Callers {
    /// Finds the place of every launch.
    #[must_use]
    pub fn find(forest: &Forest<'_>, detail: Detail) -> Callers {
        let mut callers = Callers::default();
        let mut known: HashMap<CallSite, u32> = HashMap::new();
        // Many launches have the same chain, and chains the same place.
        let mut by_chain: HashMap<Chains<'_>, Option<u32>> = HashMap::new();
        for (index, launch) in forest.launches.iter().enumerate() {
            let script = launch.script_stack;
            let given = script.and_then(|_| command_of(forest.launcher(index)?));
            let chain = (script, launch.native_stack, launch.birth_command.name, given);
            let call_site = *by_chain.entry(chain).or_insert_with(|| {
                let call_site = CallSite::of(forest, launch, given, detail)?;
                Some(*known.entry(call_site).or_insert_with_key(|call_site| {
                    callers.call_sites.push(call_site.clone());
                    callers.call_sites.len() as u32 - 1
                }))
            });
            callers.of_launch.push(match call_site {
                _ if !launch.is_launch() || launch.parent.get().is_none() => Requester::ByNobody,
                Some(call_site) => Requester::At(call_site),
                None => Requester::Unknown,
            });
        }
        callers.merge_alike();
        mark_namesakes(&mut callers.call_sites);
        callers
    }

    /// Tells scripts by their first word where many begin with it: they are one script with different arguments.
    fn merge_alike(&mut self) {
        let mut alike: HashMap<(Option<Vec<u8>>, Vec<u8>), u32> = HashMap::new();
        let key = |call_site: &CallSite| Some((call_site.program.clone(), call_site.first_word()?.to_vec()));
        for key in self.call_sites.iter().filter_map(key) {
            *alike.entry(key).or_default() += 1;
        }
        let mut known: HashMap<CallSite, u32> = HashMap::new();
        let mut numbers = Vec::new();
        for mut call_site in std::mem::take(&mut self.call_sites) {
            if let Some(key) = key(&call_site).filter(|key| alike[key] > MOST_ALIKE) {
                call_site.text = Some([&key.1, " …".as_bytes()].concat());
            }
            numbers.push(*known.entry(call_site).or_insert_with_key(|call_site| {
                self.call_sites.push(call_site.clone());
                self.call_sites.len() as u32 - 1
            }));
        }
        for asked in &mut self.of_launch {
            if let Requester::At(number) = asked {
                *number = numbers[*number as usize];
            }
        }
    }

    /// Whether any launch's place is known.
    #[must_use]
    pub fn has_any(&self) -> bool {
        self.of_launch.iter().any(|asked| matches!(asked, Requester::At(_)))
    }

    /// Where the launch at an index was asked for.
    #[must_use]
    pub fn of(&self, launch: usize) -> Option<&CallSite> {
        self.number_of(launch).map(|number| self.call_site(number))
    }

    /// The number of that place, which equal places share.
    pub(in crate::analyze) fn number_of(&self, launch: usize) -> Option<u32> {
        match self.of_launch.get(launch) {
            Some(Requester::At(call_site)) => Some(*call_site),
            _ => None,
        }
    }

    pub(in crate::analyze) fn call_site(&self, number: u32) -> &CallSite {
        &self.call_sites[number as usize]
    }

    /// Counts launches by their place.
    #[must_use]
    pub fn count(&self, launches: &[u32]) -> CallerCounts {
        let mut counts: HashMap<u32, u64> = HashMap::new();
        let mut unknown = 0;
        for launch in launches {
            match self.of_launch.get(*launch as usize) {
                Some(Requester::At(number)) => *counts.entry(*number).or_default() += 1,
                Some(Requester::Unknown) => unknown += 1,
                Some(Requester::ByNobody) | None => {}
            }
        }
        let mut counts: Vec<(u32, u64)> = counts.into_iter().collect();
        counts.sort_by_key(|(number, count)| (Reverse(*count), self.call_site(*number)));
        let told = counts.len().min(MOST_TOLD);
        let (most, others) = counts.split_at(told);
        CallerCounts {
            most: most
                .iter()
                .map(|(number, count)| (self.call_site(*number).clone(), *count))
                .collect(),
            other_places: others.len() as u64,
            others: others.iter().map(|(_, count)| count).sum(),
            unknown,
        }
    }
}

/// Marks places in files that share their base name with another file.
fn mark_namesakes(call_sites: &mut [CallSite]) {
    let files: HashSet<&[u8]> = call_sites
        .iter()
        .filter_map(|call_site| call_site.file.as_deref())
        .collect();
    let mut bearers: HashMap<&[u8], u32> = HashMap::new();
    for file in files {
        *bearers.entry(base_name(file)).or_default() += 1;
    }
    let is_shared = |call_site: &CallSite| {
        call_site
            .file
            .as_deref()
            .is_some_and(|file| bearers[base_name(file)] > 1)
    };
    let shared: Vec<bool> = call_sites.iter().map(is_shared).collect();
    for (call_site, shared) in call_sites.iter_mut().zip(shared) {
        call_site.has_namesake = shared;
    }
}

/// Which places asked for a set of launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerCounts {
    /// Those that asked for most, with their counts, the most first.
    pub most: Vec<(CallSite, u64)>,
    /// Places beyond these.
    pub other_places: u64,
    /// Launches that those asked for.
    pub others: u64,
    /// Launches whose place is not known.
    pub unknown: u64,
}
