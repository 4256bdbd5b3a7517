//! The protobuf messages of a Perfetto trace that `perfetto` needs, with the field numbers of Perfetto's trace protos, and the packets that
//! wrap them.

use prost::Message;

use crate::event::Nanos;

/// All packets form one sequence. They refer to each other only by track ids.
const SEQUENCE: u32 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: the first packet does not depend on earlier ones.
const STATE_CLEARED: u32 = 1;
/// Perfetto's `BUILTIN_CLOCK_REALTIME`.
const REALTIME: u32 = 1;
/// Perfetto's `BUILTIN_CLOCK_BOOTTIME`, the default clock of timestamps.
const BOOTTIME: u32 = 6;

/// `perfetto.protos.TracePacket`
#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    #[prost(message, optional, tag = "6")]
    pub(super) clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    pub(super) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(super) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(super) track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    pub(super) sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    pub(super) track_descriptor: Option<TrackDescriptor>,
}

/// `perfetto.protos.ClockSnapshot`
#[derive(Clone, PartialEq, Message)]
pub(super) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub(super) clocks: Vec<Clock>,
}

/// `perfetto.protos.ClockSnapshot.Clock`
#[derive(Clone, PartialEq, Message)]
pub(super) struct Clock {
    #[prost(uint32, optional, tag = "1")]
    pub(super) clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) timestamp: Option<u64>,
}

/// `perfetto.protos.TrackDescriptor`. A track with a process or a thread would not be nested: Perfetto ignores the parent of such a track.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(super) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) parent_uuid: Option<u64>,
    #[prost(enumeration = "ChildTracksOrdering", optional, tag = "11")]
    pub(super) child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub(super) sibling_order_rank: Option<i32>,
    #[prost(string, optional, tag = "14")]
    pub(super) description: Option<String>,
    #[prost(enumeration = "SiblingMergeBehavior", optional, tag = "15")]
    pub(super) sibling_merge_behavior: Option<i32>,
}

/// `perfetto.protos.TrackDescriptor.ChildTracksOrdering`
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
pub(super) enum ChildTracksOrdering {
    Unknown = 0,
    /// By `sibling_order_rank`.
    Explicit = 3,
}

/// `perfetto.protos.TrackDescriptor.SiblingMergeBehavior`
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
pub(super) enum SiblingMergeBehavior {
    /// The UI merges siblings of the same name.
    Unspecified = 0,
    None = 2,
}

/// `perfetto.protos.TrackEvent`
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub(super) debug_annotations: Vec<DebugAnnotation>,
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub(super) r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    pub(super) track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    pub(super) categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    pub(super) name: Option<String>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub(super) flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub(super) terminating_flow_ids: Vec<u64>,
}

/// `perfetto.protos.TrackEvent.Type`
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
pub(super) enum EventType {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
}

/// `perfetto.protos.DebugAnnotation`
#[derive(Clone, PartialEq, Message)]
pub(super) struct DebugAnnotation {
    #[prost(int64, optional, tag = "4")]
    pub(super) int_value: Option<i64>,
    #[prost(string, optional, tag = "6")]
    pub(super) string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    pub(super) name: Option<String>,
}

impl TracePacket {
    /// Returns a packet that maps time zero, the start of the recording, to the wall clock.
    pub(super) fn clock(started_unix_ns: i64) -> TracePacket {
        let unix_ns = u64::try_from(started_unix_ns).unwrap_or_default();
        let clocks = [(BOOTTIME, 0), (REALTIME, unix_ns)]
            .map(|(id, timestamp)| Clock { clock_id: Some(id), timestamp: Some(timestamp) });
        TracePacket {
            clock_snapshot: Some(ClockSnapshot { clocks: clocks.to_vec() }),
            timestamp: Some(0),
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(STATE_CLEARED),
            ..TracePacket::default()
        }
    }

    /// Returns a packet that describes a track.
    pub(super) fn track(descriptor: TrackDescriptor) -> TracePacket {
        TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_descriptor: Some(descriptor),
            ..TracePacket::default()
        }
    }

    /// Returns a packet with an event.
    pub(super) fn event(at: Nanos, event: TrackEvent) -> TracePacket {
        TracePacket {
            timestamp: Some(at.0),
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_event: Some(event),
            ..TracePacket::default()
        }
    }
}

impl TrackEvent {
    /// Returns the beginning of a slice.
    pub(super) fn begin(track: u64, category: &str, name: String) -> TrackEvent {
        TrackEvent {
            name: Some(name),
            categories: vec![category.to_owned()],
            ..TrackEvent::new(track, EventType::SliceBegin)
        }
    }

    /// Returns the end of the slice that began last on the track.
    pub(super) fn end(track: u64) -> TrackEvent {
        TrackEvent::new(track, EventType::SliceEnd)
    }

    /// Returns an event without a duration.
    pub(super) fn instant(track: u64, category: &str, name: String) -> TrackEvent {
        TrackEvent { r#type: Some(EventType::Instant as i32), ..TrackEvent::begin(track, category, name) }
    }

    fn new(track: u64, r#type: EventType) -> TrackEvent {
        TrackEvent { r#type: Some(r#type as i32), track_uuid: Some(track), ..TrackEvent::default() }
    }
}

impl DebugAnnotation {
    /// Returns an argument of a slice whose value is text.
    pub(super) fn text(name: &str, value: String) -> DebugAnnotation {
        DebugAnnotation { name: Some(name.to_owned()), string_value: Some(value), int_value: None }
    }

    /// Returns an argument of a slice whose value is a number.
    pub(super) fn number(name: &str, value: u64) -> DebugAnnotation {
        DebugAnnotation { name: Some(name.to_owned()), string_value: None, int_value: i64::try_from(value).ok() }
    }
}
