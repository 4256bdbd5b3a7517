//! The protobuf messages of an OTLP trace, with the field numbers of opentelemetry-proto (trace/v1, common/v1, resource/v1), and the same as
//! JSON: names in lowerCamelCase, ids in hexadecimal, 64-bit numbers as strings, enumerations as numbers.

use prost::{Message, Oneof};
use serde_json::{Map, Value, json};

use crate::present::json::hex;

/// `TracesData`, which is the same on the wire as `ExportTraceServiceRequest`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TracesData {
    #[prost(message, repeated, tag = "1")]
    pub(super) resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) spans: Vec<Span>,
}

/// `InstrumentationScope`
#[derive(Clone, PartialEq, Message)]
pub(super) struct Scope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(super) name: String,
    #[prost(int32, tag = "6")]
    pub(super) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(super) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub(super) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    pub(super) status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    pub(super) flags: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Status {
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(int32, tag = "3")]
    pub(super) code: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "AnyValueKind", tags = "1, 3, 5")]
    pub(super) kind: Option<AnyValueKind>,
}

/// The types of values that are used here.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum AnyValueKind {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(message, tag = "5")]
    Array(ArrayValue),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    pub(super) values: Vec<AnyValue>,
}

impl KeyValue {
    pub(super) fn text(key: &str, value: impl Into<String>) -> KeyValue {
        KeyValue::new(key, AnyValueKind::Text(value.into()))
    }

    pub(super) fn int(key: &str, value: impl TryInto<i64>) -> KeyValue {
        KeyValue::new(key, AnyValueKind::Int(value.try_into().unwrap_or(i64::MAX)))
    }

    pub(super) fn texts(key: &str, values: impl Iterator<Item = String>) -> KeyValue {
        let values = values.map(|value| AnyValue { kind: Some(AnyValueKind::Text(value)) });
        KeyValue::new(key, AnyValueKind::Array(ArrayValue { values: values.collect() }))
    }

    fn new(key: &str, kind: AnyValueKind) -> KeyValue {
        KeyValue { key: key.to_owned(), value: Some(AnyValue { kind: Some(kind) }) }
    }

    fn json(&self) -> Value {
        json!({ "key": self.key, "value": self.value.as_ref().map(AnyValue::json) })
    }
}

impl AnyValue {
    fn json(&self) -> Value {
        match &self.kind {
            Some(AnyValueKind::Text(text)) => json!({ "stringValue": text }),
            Some(AnyValueKind::Int(int)) => json!({ "intValue": int.to_string() }),
            Some(AnyValueKind::Array(array)) => {
                json!({ "arrayValue": { "values": array.values.iter().map(AnyValue::json).collect::<Vec<_>>() } })
            }
            None => json!({}),
        }
    }
}

impl TracesData {
    pub(super) fn json(&self) -> Value {
        json!({ "resourceSpans": self.resource_spans.iter().map(ResourceSpans::json).collect::<Vec<_>>() })
    }
}

impl ResourceSpans {
    fn json(&self) -> Value {
        let resource = self.resource.as_ref().map(|resource| json!({ "attributes": attributes(&resource.attributes) }));
        json!({ "resource": resource, "scopeSpans": self.scope_spans.iter().map(ScopeSpans::json).collect::<Vec<_>>() })
    }
}

impl ScopeSpans {
    fn json(&self) -> Value {
        let spans: Vec<Value> = self.spans.iter().map(Span::json).collect();
        let scope = self.scope.as_ref().map(|scope| json!({ "name": scope.name, "version": scope.version }));
        json!({ "scope": scope, "spans": spans })
    }
}

impl Span {
    fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("traceId".into(), hex(&self.trace_id).into());
        object.insert("spanId".into(), hex(&self.span_id).into());
        if !self.parent_span_id.is_empty() {
            object.insert("parentSpanId".into(), hex(&self.parent_span_id).into());
        }
        object.insert("name".into(), self.name.clone().into());
        object.insert("kind".into(), self.kind.into());
        object.insert("startTimeUnixNano".into(), self.start_time_unix_nano.to_string().into());
        object.insert("endTimeUnixNano".into(), self.end_time_unix_nano.to_string().into());
        object.insert("attributes".into(), attributes(&self.attributes));
        if let Some(status) = &self.status {
            object.insert("status".into(), json!({ "message": status.message, "code": status.code }));
        }
        object.insert("flags".into(), self.flags.into());
        Value::Object(object)
    }
}

fn attributes(attributes: &[KeyValue]) -> Value {
    attributes.iter().map(KeyValue::json).collect()
}
