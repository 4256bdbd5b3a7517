//! The packets of a Perfetto trace as protobuf, with the field numbers of Perfetto's trace protos.
//! Only the fields that `perfetto` needs.

use crate::event::Nanos;
use crate::present::html::push_varint;

/// All packets form one sequence. They refer to each other only by track ids.
const SEQUENCE: u64 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: the first packet does not depend on earlier ones.
const STATE_CLEARED: u64 = 1;
/// Perfetto's `BUILTIN_CLOCK_REALTIME`.
const REALTIME: u64 = 1;
/// Perfetto's `BUILTIN_CLOCK_BOOTTIME`, the default clock of timestamps.
const BOOTTIME: u64 = 6;
/// `ChildTracksOrdering.EXPLICIT`: by `sibling_order_rank`.
const EXPLICIT: u64 = 3;
/// `SiblingMergeBehavior.SIBLING_MERGE_BEHAVIOR_NONE`: by default, the UI merges siblings of the
/// same name.
const NO_MERGING: u64 = 2;
/// `TrackEvent.Type`
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;

/// A protobuf message. Fields are appended in any order.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    fn key(&mut self, field: u64, wire_type: u64) {
        push_varint(&mut self.0, (field << 3) | wire_type);
    }

    fn number(mut self, field: u64, number: u64) -> Message {
        self.key(field, 0);
        push_varint(&mut self.0, number);
        self
    }

    fn fixed(mut self, field: u64, number: u64) -> Message {
        self.key(field, 1);
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Message {
        self.key(field, 2);
        push_varint(&mut self.0, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, field: u64, text: &str) -> Message {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u64, message: &Message) -> Message {
        self.bytes(field, &message.0)
    }
}

/// A `TracePacket` as a field of the trace. A trace is a message with a single repeated field, so
/// packets can be written one after another.
pub(super) fn packet(contents: &Message) -> Vec<u8> {
    Message::default().message(1, contents).0
}

/// Maps time zero, the start of the recording, to the wall clock.
pub(super) fn clock(started_unix_ns: i64) -> Message {
    let unix_ns = u64::try_from(started_unix_ns).unwrap_or_default();
    let clocks = [(BOOTTIME, 0), (REALTIME, unix_ns)].into_iter().fold(Message::default(), |clocks, (id, at)| {
        clocks.message(1, &Message::default().number(1, id).number(2, at))
    });
    Message::default().message(6, &clocks).number(8, 0).number(10, SEQUENCE).number(13, STATE_CLEARED)
}

pub(super) fn track_packet(track: &Message) -> Message {
    Message::default().number(10, SEQUENCE).message(60, track)
}

pub(super) fn event_packet(at: Nanos, event: &Message) -> Message {
    Message::default().number(8, at.0).number(10, SEQUENCE).message(11, event)
}

/// `TrackDescriptor`. A track with a process or a thread would not be nested: Perfetto ignores the
/// parent of such a track.
pub(super) fn track(uuid: u64, name: &str) -> Message {
    Message::default().number(1, uuid).text(2, name)
}

impl Message {
    /// Nests a track in another one, in the order of ranks.
    pub(super) fn inside(self, parent: u64, rank: u64) -> Message {
        self.number(5, parent).number(12, rank)
    }

    pub(super) fn described(self, description: &str) -> Message {
        self.text(14, description)
    }

    /// Orders the tracks inside of a track by their ranks.
    pub(super) fn with_ranks(self) -> Message {
        self.number(11, EXPLICIT)
    }

    /// Keeps a track apart from siblings of the same name.
    pub(super) fn unmerged(self) -> Message {
        self.number(15, NO_MERGING)
    }
}

pub(super) fn begin(track: u64, category: &str, name: &str) -> Message {
    event(track, SLICE_BEGIN).text(22, category).text(23, name)
}

/// The end of the slice that began last on the track.
pub(super) fn end(track: u64) -> Message {
    event(track, SLICE_END)
}

pub(super) fn instant(track: u64, category: &str, name: &str) -> Message {
    event(track, INSTANT).text(22, category).text(23, name)
}

fn event(track: u64, kind: u64) -> Message {
    Message::default().number(9, kind).number(11, track)
}

impl Message {
    pub(super) fn with_arrow(self, id: u64) -> Message {
        self.fixed(47, id)
    }

    pub(super) fn with_arrowhead(self, id: u64) -> Message {
        self.fixed(48, id)
    }

    /// Adds an argument of a slice, if it is known.
    pub(super) fn with_text(self, name: &str, value: Option<String>) -> Message {
        self.with_argument(name, value.map(|text| Message::default().text(6, &text)))
    }

    /// Adds an argument of a slice, if it is known. Numbers are signed 64-bit integers.
    pub(super) fn with_number(self, name: &str, value: Option<u64>) -> Message {
        self.with_argument(name, value.map(|number| Message::default().number(4, number)))
    }

    fn with_argument(self, name: &str, value: Option<Message>) -> Message {
        match value {
            Some(value) => self.message(4, &value.text(10, name)),
            None => self,
        }
    }
}
