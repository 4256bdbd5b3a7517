//! The two ring buffers that the BPF programs write to: one for events, one for copies of stacks.
//! They are read in batches, because if events arrive faster than they can be read, a reader that
//! continued until the buffer is empty would never return.

use std::cell::{RefCell, RefMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use libbpf_rs::{Object, RingBuffer, RingBufferBuilder};
use rustix::event::epoll;

use super::decode::{self, Chains};
use super::peers::Peer;
use super::seeds::OwnLaunches;
use super::{failed, map, stacks};
use crate::CollectError;
use crate::stacks::Unwinder;
use crate::wire::WireNewExecutable;
use spawnscope_data::event::Event;

/// Maximum number of records per batch. Reading a batch takes about 20 ms.
const BATCH_RECORDS: usize = 16_384;

/// What the callbacks of the ring buffers have read.
#[derive(Default)]
pub(super) struct DrainedRecords {
    pub events: Vec<Event>,
    /// Executables that have not been examined yet.
    pub executables: Vec<WireNewExecutable>,
    /// The peers of sockets whose processes have not been looked for yet.
    pub peers: Vec<Peer>,
    chains: Chains,
    /// The recorder's own launches, whose records are dropped.
    own_launches: OwnLaunches,
    /// Number of records that could not be decoded. They are due to a bug, and are reported as lost
    /// events.
    pub malformed: u64,
}

/// Both ring buffers.
pub(super) struct Rings {
    rings: Vec<RingBuffer<'static>>,
    /// A descriptor that is readable if one of the ring buffers is.
    readiness: OwnedFd,
    drained: Rc<RefCell<DrainedRecords>>,
}

impl Rings {
    /// Opens the ring buffer of events and, if there is an unwinder, that of stacks.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn open(object: &Object, unwinder: Option<&Rc<RefCell<Unwinder>>>) -> Result<Rings, CollectError> {
        let drained = Rc::default();
        let mut rings = vec![ring(object, "events", read_events(&drained))?];
        if let Some(unwinder) = unwinder {
            rings.push(ring(object, "stacks", read_stacks(&drained, unwinder))?);
        }
        Ok(Rings {
            readiness: create_epoll(&rings).map_err(|error| failed("wait for a ring buffer", &error.into()))?,
            rings,
            drained,
        })
    }

    /// Returns a descriptor that is readable if there are records to read.
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.readiness.as_fd()
    }

    /// Returns the records that have been read and not yet taken.
    pub fn drained(&self) -> RefMut<'_, DrainedRecords> {
        self.drained.borrow_mut()
    }

    /// Reads one batch from each ring buffer. Returns whether both are now empty.
    ///
    /// # Errors
    /// If a ring buffer cannot be read.
    pub fn consume_batch(&self) -> Result<bool, CollectError> {
        let mut is_empty = true;
        for ring in &self.rings {
            let read = ring.consume_raw_n(BATCH_RECORDS);
            let read = usize::try_from(read).map_err(|_| {
                let error = std::io::Error::from_raw_os_error(-read);
                failed("read the ring buffer", &error.into())
            })?;
            is_empty &= read < BATCH_RECORDS;
        }
        Ok(is_empty)
    }
}

fn read_events(drained: &Rc<RefCell<DrainedRecords>>) -> impl FnMut(&[u8]) -> i32 + use<> {
    let page_bytes = rustix::param::page_size() as u64;
    let drained = Rc::clone(drained);
    move |record| {
        let drained = &mut *drained.borrow_mut();
        if drained.own_launches.is_own_record(record) {
            return 0;
        }
        if let Some(executable) = decode::new_executable(record) {
            drained.executables.push(executable);
        } else if let Some(peer) = Peer::decode(record) {
            drained.events.push(peer.named_event());
            drained.peers.push(peer);
        } else if decode::decode(record, page_bytes, &mut drained.chains, &mut drained.events).is_none() {
            drained.malformed += 1;
        }
        0
    }
}

fn read_stacks(
    drained: &Rc<RefCell<DrainedRecords>>,
    unwinder: &Rc<RefCell<Unwinder>>,
) -> impl FnMut(&[u8]) -> i32 + use<> {
    let (drained, unwinder) = (Rc::clone(drained), Rc::clone(unwinder));
    move |record| {
        if drained.borrow_mut().own_launches.is_own_record(record) {
            return 0;
        }
        match stacks::decode(record) {
            Some(input) => unwinder.borrow_mut().send(input),
            None => drained.borrow_mut().malformed += 1,
        }
        0
    }
}

fn ring(
    object: &Object,
    name: &str,
    read: impl FnMut(&[u8]) -> i32 + 'static,
) -> Result<RingBuffer<'static>, CollectError> {
    let map = map(object, name)?;
    let mut builder = RingBufferBuilder::new();
    let added = builder.add(&map, read).map(|_| ());
    added.and_then(|()| builder.build()).map_err(|error| failed("open the ring buffer", &error))
}

/// Creates a descriptor that is readable if one of the ring buffers is.
fn create_epoll(rings: &[RingBuffer<'_>]) -> std::io::Result<OwnedFd> {
    let all = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for ring in rings {
        // SAFETY: the descriptor belongs to the ring buffer, which lives as long as the reference
        // to it.
        let one = unsafe { BorrowedFd::borrow_raw(ring.epoll_fd()) };
        epoll::add(&all, one, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    Ok(all)
}
