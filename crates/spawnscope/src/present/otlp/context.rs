//! The ids of a trace: those in TRACEPARENT (W3C Trace Context), so that the command becomes part
//! of its caller's trace, or new ones.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The trace that the spans belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: [u8; 16],
    /// The span that launched the command, if it is part of another trace.
    pub parent: Option<[u8; 8]>,
    /// The flags of the trace. Bit 0: sampled.
    pub flags: u8,
}

impl TraceContext {
    /// Parses a TRACEPARENT: `00-TRACE-SPAN-FLAGS`, in lower-case hexadecimal. Returns `None` if it
    /// is invalid: the caller ignores it then.
    pub fn parse(text: &str) -> Option<TraceContext> {
        let mut parts = text.trim().split('-');
        let [version] = parse_hex(parts.next()?)?;
        let (trace_id, parent, [flags]) =
            (parse_hex(parts.next()?)?, parse_hex(parts.next()?)?, parse_hex(parts.next()?)?);
        // Later versions may add parts; version 255 is invalid.
        let has_more = parts.next().is_some();
        let is_valid = version != 0xff && (version > 0 || !has_more) && trace_id != [0; 16] && parent != [0; 8];
        is_valid.then_some(TraceContext { trace_id, parent: Some(parent), flags })
    }

    /// Returns a new trace for a recording. Its ids are the same for each export of this recording,
    /// so that two exports do not become two traces.
    pub fn for_recording(started_unix_ns: i64, command: &[Vec<u8>]) -> TraceContext {
        let mut trace_id = [0; 16];
        for (number, half) in (0u8..).zip(trace_id.chunks_mut(8)) {
            let mut hasher = DefaultHasher::new();
            (number, started_unix_ns, command).hash(&mut hasher);
            half.copy_from_slice(&hasher.finish().max(1).to_be_bytes());
        }
        TraceContext { trace_id, parent: None, flags: 1 }
    }

    /// Returns the id of the span with a number. Numbers below 2^63 have different ids.
    pub(super) fn span_id(&self, number: u64) -> [u8; 8] {
        let mut half = [0; 8];
        half.copy_from_slice(&self.trace_id[8..]);
        // An odd factor permutes all 64-bit numbers.
        let id = (u64::from_be_bytes(half) ^ 0x5bd1_e995).wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        id.max(1).to_be_bytes()
    }
}

fn parse_hex<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let is_lower = hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if hex.len() != 2 * N || !is_lower {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_traceparent_is_ignored() {
        let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = TraceContext::parse(valid).unwrap();
        assert_eq!(context.trace_id[..2], [0x4b, 0xf9]);
        assert_eq!(context.parent.unwrap()[7], 0xb7);
        assert!(TraceContext::parse(&valid.replacen("00", "01", 1)).is_some());
        for invalid in [
            "",
            "00-0-0-01",
            &valid.to_uppercase(),
            &valid.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &valid.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &valid.replacen("00", "ff", 1),
            &format!("{valid}-more"),
        ] {
            assert_eq!(TraceContext::parse(invalid), None, "{invalid}");
        }
    }
}
