//! The protobuf messages of OTLP metrics, with the field numbers of opentelemetry-proto (metrics/v1).

use prost::{Message, Oneof};

use super::messages::{KeyValue, Resource, Scope};

/// `MetricsData`, which is the same on the wire as `ExportMetricsServiceRequest`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricsData {
    #[prost(message, repeated, tag = "1")]
    pub(super) resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Metric {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) description: String,
    #[prost(string, tag = "3")]
    pub(super) unit: String,
    #[prost(oneof = "Points", tags = "5, 7, 9")]
    pub(super) points: Option<Points>,
}

/// The types of metrics that are used here.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Points {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
    #[prost(message, tag = "9")]
    Histogram(Histogram),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Gauge {
    #[prost(message, repeated, tag = "1")]
    pub(super) points: Vec<NumberPoint>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Sum {
    #[prost(message, repeated, tag = "1")]
    pub(super) points: Vec<NumberPoint>,
    #[prost(int32, tag = "2")]
    pub(super) temporality: i32,
    #[prost(bool, tag = "3")]
    pub(super) is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Histogram {
    #[prost(message, repeated, tag = "1")]
    pub(super) points: Vec<HistogramPoint>,
    #[prost(int32, tag = "2")]
    pub(super) temporality: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NumberPoint {
    #[prost(fixed64, tag = "2")]
    pub(super) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    pub(super) time_unix_nano: u64,
    // In the format, this is part of a oneof, so it is optional here: otherwise, 0 would not be written.
    #[prost(sfixed64, optional, tag = "6")]
    pub(super) int: Option<i64>,
    #[prost(message, repeated, tag = "7")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HistogramPoint {
    #[prost(fixed64, tag = "2")]
    pub(super) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    pub(super) time_unix_nano: u64,
    #[prost(fixed64, tag = "4")]
    pub(super) count: u64,
    #[prost(double, optional, tag = "5")]
    pub(super) sum: Option<f64>,
    #[prost(fixed64, repeated, tag = "6")]
    pub(super) bucket_counts: Vec<u64>,
    #[prost(double, repeated, tag = "7")]
    pub(super) explicit_bounds: Vec<f64>,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<KeyValue>,
}
