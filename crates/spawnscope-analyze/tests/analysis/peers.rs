//! Waits for internet sockets whose peer is a process of the same machine. An interrupt ends the
//! waits, and the name of the peer is that of the listening process.

use spawnscope_analyze::waits::attribution::{WaitTarget, attributed_waits};
use spawnscope_data::rows::{ObjectRef, ObjectRow, PeerRow};

use crate::prelude::*;

const WALL: u64 = 10_000_000;
const WAITED: u64 = 3_000_000;
const POLL: u16 = 7;
const RECVFROM: u16 = 45;
const DEVICE: u32 = 8;

/// Builds a recording of a client that waits twice in the system call `call`, for two sockets with
/// the same address.
fn client(call: u16, has_listener: bool) -> (Recording, Vec<SliceRow>) {
    let mut builder = Builder::command("/bin/client", &["client"], WALL);
    let (path, name) = (Some(builder.text(b"127.0.0.1:4226")), builder.text(b"sccache"));
    let mut slices = Vec::new();
    for (place, (on, at)) in [(0, 1_000_000), (4_000_000, 5_000_000)].into_iter().enumerate() {
        let inode = 70 + place as u64;
        let kind = ObjectKind::Socket;
        builder.recording.objects.push(ObjectRow { kind, device: DEVICE, inode, path });
        if has_listener {
            builder.recording.peers.push(PeerRow { device: DEVICE, inode, pid: Pid(77), name });
        }
        slices.push(SliceRow {
            is_waker_certain: Some(true),
            object: ObjectRef::new(kind, place),
            ..slice(1, on, at, [WAITED, 0], call, Some(WakerRow::Interrupt))
        });
    }
    slices.push(ended(1, 8_000_000, WALL));
    (builder.recording, slices)
}

/// The address that was waited for, the process that listens there, and the number of waits.
type AttributedWait = (Option<Vec<u8>>, WaitTarget, u64);

/// Returns the external wait with the longest time on the critical path, and the attributed waits.
fn longest_wait_and_attribution(
    (recording, slices): &(Recording, Vec<SliceRow>),
) -> (ExternalWait, Vec<AttributedWait>) {
    let forest = Forest::build(recording);
    let timelines = timelines(&forest, slices);
    let path = critical_path(&forest, &timelines, Nanos(WALL)).unwrap();
    let (longest, span) = path.external_wait.into_iter().max_by_key(|(_, span)| *span).unwrap();
    assert_eq!(span, Nanos(2 * WAITED));
    let waits = attributed_waits(recording, &forest, &timelines);
    let seen = waits
        .into_iter()
        .map(|wait| (wait.object.and_then(|object| object.path), wait.targets[0].target.clone(), wait.count));
    (longest, seen.collect())
}

#[test]
fn a_wait_for_a_local_peer_is_for_the_process_that_listens() {
    let (longest, waits) = longest_wait_and_attribution(&client(RECVFROM, true));
    assert!(matches!(longest, ExternalWait::Process(Some(_))), "{longest:?}");
    let expected = (Some(b"127.0.0.1:4226".to_vec()), WaitTarget::Process(Some(b"sccache".to_vec())), 2);
    assert_eq!(waits, [expected], "two sockets with one address are one wait");
}

#[test]
fn a_wait_without_a_known_listener_is_for_the_network() {
    assert_eq!(longest_wait_and_attribution(&client(RECVFROM, false)), (ExternalWait::Network, Vec::new()));
}

#[test]
fn a_poll_of_the_socket_is_a_wait_for_the_process() {
    let (longest, waits) = longest_wait_and_attribution(&client(POLL, true));
    assert!(matches!(longest, ExternalWait::Process(Some(_))), "{longest:?}");
    assert_eq!(waits.len(), 1);
    assert_eq!(longest_wait_and_attribution(&client(POLL, false)), (ExternalWait::Network, Vec::new()));
}

/// The collector records no socket for a poll that timed out.
#[test]
fn a_poll_that_timed_out_is_not_for_the_process() {
    let (recording, mut slices) = client(POLL, true);
    slices.iter_mut().for_each(|slice| slice.object = None);
    assert_eq!(longest_wait_and_attribution(&(recording, slices)), (ExternalWait::Timer, Vec::new()));
}
