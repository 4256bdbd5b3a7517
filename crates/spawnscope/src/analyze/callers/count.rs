//! The places of all launches of a recording, each told once, and which of them asked for most launches.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::place::{Detail, Place};
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
    places: Vec<Place>,
    /// By the launch's index.
    of_launch: Vec<Asked>,
}

/// What a place is found from: both chains, the program that ran the script, and the script that it was given with `-c`.
type Chains<'a> = (Option<StackId>, Option<StackId>, &'a [u8], Option<&'a [u8]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
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
        let mut known: HashMap<Place, u32> = HashMap::new();
        // Many launches have the same chain, and chains the same place.
        let mut by_chain: HashMap<Chains<'_>, Option<u32>> = HashMap::new();
        for (index, launch) in forest.launches.iter().enumerate() {
            let script = launch.script_stack;
            let given = script.and_then(|_| command_of(forest.launcher(index)?));
            let chain = (script, launch.native_stack, launch.birth_command.name, given);
            let place = *by_chain.entry(chain).or_insert_with(|| {
                let place = Place::of(forest, launch, given, detail)?;
                Some(*known.entry(place).or_insert_with_key(|place| {
                    callers.places.push(place.clone());
                    callers.places.len() as u32 - 1
                }))
            });
            callers.of_launch.push(match place {
                _ if !launch.is_launch() || launch.parent.get().is_none() => Asked::ByNobody,
                Some(place) => Asked::At(place),
                None => Asked::Unknown,
            });
        }
        callers.merge_alike();
        mark_namesakes(&mut callers.places);
        callers
    }

    /// Tells scripts by their first word where many begin with it: they are one script with different arguments.
    fn merge_alike(&mut self) {
        let mut alike: HashMap<(Option<Vec<u8>>, Vec<u8>), u32> = HashMap::new();
        let key = |place: &Place| Some((place.program.clone(), place.first_word()?.to_vec()));
        for key in self.places.iter().filter_map(key) {
            *alike.entry(key).or_default() += 1;
        }
        let mut known: HashMap<Place, u32> = HashMap::new();
        let mut numbers = Vec::new();
        for mut place in std::mem::take(&mut self.places) {
            if let Some(key) = key(&place).filter(|key| alike[key] > MOST_ALIKE) {
                place.text = Some([&key.1, " …".as_bytes()].concat());
            }
            numbers.push(*known.entry(place).or_insert_with_key(|place| {
                self.places.push(place.clone());
                self.places.len() as u32 - 1
            }));
        }
        for asked in &mut self.of_launch {
            if let Asked::At(number) = asked {
                *number = numbers[*number as usize];
            }
        }
    }

    /// Whether any launch's place is known.
    #[must_use]
    pub fn has_any(&self) -> bool {
        self.of_launch.iter().any(|asked| matches!(asked, Asked::At(_)))
    }

    /// Where the launch at an index was asked for.
    #[must_use]
    pub fn of(&self, launch: usize) -> Option<&Place> {
        self.number_of(launch).map(|number| self.place(number))
    }

    /// The number of that place, which equal places share.
    pub(in crate::analyze) fn number_of(&self, launch: usize) -> Option<u32> {
        match self.of_launch.get(launch) {
            Some(Asked::At(place)) => Some(*place),
            _ => None,
        }
    }

    pub(in crate::analyze) fn place(&self, number: u32) -> &Place {
        &self.places[number as usize]
    }

    /// Counts launches by their place.
    #[must_use]
    pub fn count(&self, launches: &[u32]) -> CallerCounts {
        let mut counts: HashMap<u32, u64> = HashMap::new();
        let mut unknown = 0;
        for launch in launches {
            match self.of_launch.get(*launch as usize) {
                Some(Asked::At(number)) => *counts.entry(*number).or_default() += 1,
                Some(Asked::Unknown) => unknown += 1,
                Some(Asked::ByNobody) | None => {}
            }
        }
        let mut counts: Vec<(u32, u64)> = counts.into_iter().collect();
        counts.sort_by_key(|(number, count)| (Reverse(*count), self.place(*number)));
        let told = counts.len().min(MOST_TOLD);
        let (most, others) = counts.split_at(told);
        CallerCounts {
            most: most
                .iter()
                .map(|(number, count)| (self.place(*number).clone(), *count))
                .collect(),
            other_places: others.len() as u64,
            others: others.iter().map(|(_, count)| count).sum(),
            unknown,
        }
    }
}

/// Marks places in files that share their base name with another file.
fn mark_namesakes(places: &mut [Place]) {
    let files: HashSet<&[u8]> = places.iter().filter_map(|place| place.file.as_deref()).collect();
    let mut bearers: HashMap<&[u8], u32> = HashMap::new();
    for file in files {
        *bearers.entry(base_name(file)).or_default() += 1;
    }
    let is_shared = |place: &Place| place.file.as_deref().is_some_and(|file| bearers[base_name(file)] > 1);
    let shared: Vec<bool> = places.iter().map(is_shared).collect();
    for (place, shared) in places.iter_mut().zip(shared) {
        place.has_namesake = shared;
    }
}

/// Which places asked for a set of launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerCounts {
    /// Those that asked for most, with their counts, the most first.
    pub most: Vec<(Place, u64)>,
    /// Places beyond these.
    pub other_places: u64,
    /// Launches that those asked for.
    pub others: u64,
    /// Launches whose place is not known.
    pub unknown: u64,
}
