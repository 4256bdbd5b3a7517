//! The log of macOS's scanner, which is beside a log of eslogger: `log stream` or `log show` with
//! the messages of syspolicyd. It says when the scan of a file began and ended; a file is scanned
//! before its first launch only. A scan belongs to the launch of that file that is nearest.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use spawnscope_data::event::Nanos;

use crate::ImportError;
use crate::input::Lines;
use crate::text::{after, find, instant};

/// Time between a launch and its scan, above which they do not belong together.
const MAX_DISTANCE_NS: u64 = 60_000_000_000;
/// Maximum number of scans that are kept, and of those that have not ended.
const MAX_SCANS: u64 = 1 << 20;
const MAX_BEGUN: usize = 64;
/// All time zones differ by multiples of this.
const ZONE_NS: i128 = 900_000_000_000;

/// A scan of a file, in nanoseconds since 1970 in the log's own time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    pub from: Nanos,
    pub to: Nanos,
}

/// The scans of a log.
#[derive(Debug, Default)]
pub struct Scans {
    /// By the path of the file or of its bundle, in order.
    by_path: HashMap<Vec<u8>, VecDeque<Scan>>,
    /// Number of all scans, including those of unnamed files.
    pub count: u64,
    /// Number of scans that belong to a launch.
    pub tied: u64,
    /// What must be added to the times of the log, once that is known.
    offset_ns: Option<i128>,
}

/// A scan that has not ended.
struct Begun {
    from: Nanos,
    path: Option<Vec<u8>>,
    /// What the log calls the file.
    subject: Vec<u8>,
}

impl Scans {
    /// Reads a log.
    pub fn read(path: &Path) -> Result<Scans, ImportError> {
        Scans::of_lines(Lines::open(path)?)
    }

    /// Reads an open log.
    pub fn of_lines(mut lines: Lines) -> Result<Scans, ImportError> {
        let (mut scans, mut begun, mut line) = (Scans::default(), VecDeque::new(), Vec::new());
        while lines.next(&mut line)? && scans.count < MAX_SCANS {
            if let Some((at, has_zone)) = time(&line) {
                scans.offset_ns = scans.offset_ns.or(has_zone.then_some(0));
                scans.add(&mut begun, at, &line);
            }
        }
        match scans.count {
            0 => Err(lines.not_of("syspolicyd")),
            _ => Ok(scans),
        }
    }

    fn add(&mut self, begun: &mut VecDeque<Begun>, at: Nanos, line: &[u8]) {
        if let Some(subject) = after(line, b"GK performScan: ") {
            begun.truncate(MAX_BEGUN);
            begun.push_front(Begun { from: at, path: named_path(subject), subject: subject.trim_ascii_end().to_vec() });
        } else if let Some(file) = after(line, b"GK Xprotect results").and_then(|text| after(text, b"file://")) {
            // One thread scans one file after the other.
            let unnamed = begun.front_mut().filter(|scan| scan.path.is_none());
            unnamed.into_iter().for_each(|scan| scan.path = Some(decoded(file)));
        } else if let Some(subject) = after(line, b"GK scan complete: ")
            && let Some(index) = begun.iter().position(|scan| subject.starts_with(&scan.subject))
            && let Some(Begun { from, path, .. }) = begun.remove(index)
        {
            self.count += 1;
            let path = path.or_else(|| named_path(subject));
            let scan = Scan { from, to: at.max(from) };
            path.into_iter().for_each(|path| self.by_path.entry(path).or_default().push_back(scan));
        }
    }

    /// Returns the scan of a file that was launched between these times, in the time zone of these.
    /// Each scan is returned once.
    pub fn take(&mut self, path: &[u8], created: Nanos, executed: Nanos) -> Option<Scan> {
        let mut ends = (0..path.len()).rev().filter(|end| path[*end] == b'/');
        // Of an application, its directory is scanned.
        let known =
            std::iter::once(path.len()).chain(&mut ends).find(|end| self.by_path.contains_key(&path[..*end]))?;
        let scans = self.by_path.get_mut(&path[..known])?;
        while let Some(scan) = scans.pop_front() {
            let difference = i128::from(executed.0) - i128::from(scan.from.0);
            let offset = self.offset_ns.unwrap_or((difference + ZONE_NS / 2).div_euclid(ZONE_NS) * ZONE_NS);
            let [from, to] =
                [scan.from, scan.to].map(|at| (i128::from(at.0) + offset).clamp(0, u64::MAX.into()) as u64);
            if to.saturating_add(MAX_DISTANCE_NS) < created.0 {
                continue;
            }
            if from > executed.0.saturating_add(MAX_DISTANCE_NS) {
                scans.push_front(scan);
                return None;
            }
            self.offset_ns = Some(offset);
            self.tied += 1;
            return Some(Scan { from: Nanos(from), to: Nanos(to) });
        }
        None
    }
}

/// Returns the time at the beginning of a line, and whether its time zone is known: `2026-11-28
/// 09:15:10.123+0100`.
fn time(line: &[u8]) -> Option<(Nanos, bool)> {
    let (at, zone) = instant(line, b' ')?;
    let (sign, digits) = zone.split_at_checked(1)?;
    let digits: Option<Vec<u64>> =
        digits.iter().take(4).map(|digit| char::from(*digit).to_digit(10).map(u64::from)).collect();
    let offset = match digits.as_deref() {
        Some([a, b, c, d]) => ((a * 10 + b) * 60 + c * 10 + d) * 60_000_000_000,
        _ => 0,
    };
    match sign {
        b"+" => Some((Nanos(at.0.checked_sub(offset)?), true)),
        b"-" => Some((Nanos(at.0.checked_add(offset)?), true)),
        _ => Some((at, false)),
    }
}

/// Returns the path in `(path: /x), (team: ...)`. Newer versions write a hash instead.
fn named_path(subject: &[u8]) -> Option<Vec<u8>> {
    let path = after(subject, b"(path: ")?;
    let end = find(path, b"), (").unwrap_or(path.len());
    path[..end].starts_with(b"/").then(|| path[..end].strip_suffix(b")").unwrap_or(&path[..end]).to_vec())
}

/// Decodes the path of a URL, without the slash at the end of a directory.
fn decoded(url: &[u8]) -> Vec<u8> {
    let text = url.split(|byte| matches!(byte, b' ' | b',' | b'"' | b')' | b'\t')).next().unwrap_or_default();
    let (mut path, mut rest) = (Vec::new(), text.strip_suffix(b"/").unwrap_or(text));
    while let [first, after @ ..] = rest {
        let escaped =
            after.first_chunk::<2>().filter(|_| *first == b'%').and_then(|digits| str::from_utf8(digits).ok());
        let byte = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        path.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    /// 2026-11-28 08:00:00 UTC.
    const START: u64 = 1_795_852_800 * SECOND;

    fn read(text: &str) -> Scans {
        Scans::of_lines(Lines::of_text(text.as_bytes())).unwrap()
    }

    fn seconds(scan: Option<Scan>) -> Option<(u64, u64)> {
        scan.map(|scan| (scan.from.0.wrapping_sub(START) / SECOND, scan.to.0.wrapping_sub(START) / SECOND))
    }

    /// Lines in the shapes of `log stream --style compact` and `--style syslog`, without (`{}`) the
    /// place of the time zone.
    fn log(hour: u32, zone: &str, kind: &str) -> String {
        let line = |second: u32, text: &str| format!("2026-11-28 {hour:02}:00:{second:02}.000{zone} {kind} {text}\n");
        [
            line(1, "GK performScan: PST: (path: 5e8ddf4d), (team: (null)), (id: (null)), (bundle_id: (null))"),
            line(2, "GK Xprotect results: 0, file:///Users/me/new%20file"),
            line(
                3,
                "GK scan complete: PST: (path: 5e8ddf4d), (team: (null)), (id: (null)), (bundle_id: (null)), 4, 4, 0",
            ),
            line(3, "GK performScan: PST: (path: /Applications/A.app), (team: X)"),
            line(5, "GK scan complete: PST: (path: /Applications/A.app), (team: X), 7, 0"),
            line(6, "GK performScan: PST: (path: <private>), (team: X)"),
            line(7, "GK scan complete: PST: (path: <private>), (team: X), 7, 0"),
        ]
        .concat()
    }

    #[test]
    fn a_scan_belongs_to_the_first_launch_of_its_file_in_any_time_zone() {
        let syslog = "localhost syspolicyd[411]: [com.apple.syspolicy.exec:default]";
        let compact = "Df syspolicyd[411:1b2c] [com.apple.syspolicy.exec:default]";
        for text in
            [log(8, "+0000", syslog), log(9, "+0100", syslog), log(2, "-0530", syslog).replace(" 02:00", " 02:30")]
                .into_iter()
                .chain([log(8, "", compact), log(17, "", compact), log(2, "", compact)])
        {
            let mut scans = read(&text);
            let at = |second: u64| Nanos(START + second * SECOND);
            assert_eq!(seconds(scans.take(b"/Users/me/other", at(1), at(1))), None);
            assert_eq!(seconds(scans.take(b"/Users/me/new file", at(0), at(1))), Some((1, 3)), "{text}");
            assert_eq!(seconds(scans.take(b"/Users/me/new file", at(4), at(5))), None, "a later launch");
            assert_eq!(seconds(scans.take(b"/Applications/A.app/Contents/MacOS/A", at(2), at(3))), Some((3, 5)));
            assert_eq!((scans.count, scans.tied), (3, 2));
        }
    }

    #[test]
    fn a_scan_of_another_time_belongs_to_no_launch() {
        let text = log(8, "+0000", "syspolicyd:");
        let at = |second: u64| Nanos(START + second * SECOND);
        assert_eq!(seconds(read(&text).take(b"/Users/me/new file", at(600), at(601))), None);
        let mut later = read(&text);
        assert_eq!(
            seconds(later.take(b"/Users/me/new file", Nanos(START - 600 * SECOND), Nanos(START - 599 * SECOND))),
            None
        );
        assert_eq!(
            seconds(later.take(b"/Users/me/new file", at(0), at(1))),
            Some((1, 3)),
            "it is kept for that launch"
        );
    }

    #[test]
    fn a_log_without_scans_is_refused() {
        let log = Lines::of_text(b"Filtering the log data\nTimestamp Ty Process[PID:TID]\n");
        assert!(Scans::of_lines(log).unwrap_err().to_string().contains("no line that syspolicyd wrote"));
    }
}
