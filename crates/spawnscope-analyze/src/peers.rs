//! The processes that listened at the other end of internet sockets. A thread that waits for such a
//! socket is woken in an interrupt, so the waker is unknown. If the peer is a process on the same
//! machine, the wait was for that process.

use std::collections::HashMap;

use crate::external_wait::{ExternalWait, external_wait_of};
use crate::timeline::{ThreadIndex, Timelines};
use spawnscope_data::event::ObjectKind;
use spawnscope_data::rows::{Recording, SliceRow, WakerRow};

/// The process at the other end of each socket of a recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peers {
    /// The processes, by the index of the socket's row in `objects`.
    processes: HashMap<usize, WakerRow>,
}

impl Peers {
    pub(crate) fn new(recording: &Recording) -> Peers {
        let mut by_inode: HashMap<(u32, u64), WakerRow> = HashMap::new();
        for peer in &recording.peers {
            by_inode.insert((peer.device, peer.inode), WakerRow::Other(peer.pid, Some(peer.name)));
        }
        if by_inode.is_empty() {
            return Peers::default();
        }
        let sockets = recording.objects.iter().enumerate();
        let sockets = sockets.filter(|(_, object)| object.kind == ObjectKind::Socket);
        let found = sockets.filter_map(|(index, object)| Some((index, *by_inode.get(&(object.device, object.inode))?)));
        Peers { processes: found.collect() }
    }

    /// Returns the slice with the peer as its waker, if its thread waited for a socket with a known
    /// peer. `None` for all other slices.
    fn with_peer(&self, slice: &SliceRow) -> Option<SliceRow> {
        let process = *self.processes.get(&slice.object?.index())?;
        let is_wait = !slice.is_open_wait() && external_wait_of(slice) == ExternalWait::Network;
        is_wait.then_some(SliceRow { waker: Some(process), is_waker_certain: Some(true), ..*slice })
    }
}

/// Rewrites the waits for sockets whose peer is known.
pub(crate) fn rewrite_waits(timelines: &mut Timelines, peers: &Peers) {
    if peers.processes.is_empty() {
        return;
    }
    for thread in 0..timelines.threads.len() as ThreadIndex {
        let slices = timelines.slices(thread);
        let found: Vec<(usize, SliceRow)> =
            slices.iter().enumerate().filter_map(|(index, slice)| Some((index, peers.with_peer(&slice)?))).collect();
        for (index, slice) in found {
            timelines.replace(thread, index, slice);
        }
    }
}
