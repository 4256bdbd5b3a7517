//! Finds commands in ninja's log by their hashes. A line is
//! `START<tab>END<tab>MTIME<tab>OUTPUT<tab>HASH`, with the hash in hexadecimal. If an output has
//! several lines, the last one counts. Any user may have written the log, so memory is bounded.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::str::FromStr;

use rapidhash::v1::rapidhash_v1;

use super::{BuildCommand, Edge};

/// Maximum number of bytes that are read at the end of a log, to which ninja appends lines. The log
/// of a build of Chromium is 10 MB.
const MAX_BYTES: u64 = 64 << 20;
/// Maximum length of a line, in bytes; longer lines are skipped. A path has at most 4096 bytes.
const MAX_LINE_BYTES: u64 = 8192;
/// Maximum number of outputs that are kept while the log is read.
const MAX_OUTPUTS: usize = 1 << 20;
/// Maximum number of outputs of an edge that are kept.
const MAX_OUTPUTS_OF_EDGE: usize = 64;

/// When an edge started and ended, in milliseconds since the start of the build.
type Times = [i64; 2];

/// What a line says about an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    hash: u64,
    /// The times of the edge, which are the same for all of its outputs.
    times: Times,
}

/// Returns the edge of each command that the log contains. Commands that several edges or several
/// launches share are skipped, because it is unknown which launch belongs to which edge.
pub(super) fn edges(mut log: impl Read + Seek, commands: &[BuildCommand]) -> io::Result<Vec<Edge>> {
    let bytes = log.seek(SeekFrom::End(0))?;
    log.rewind()?;
    let mut lines = BufReader::new(log);
    let mut line = Vec::new();
    read_line(&mut lines, &mut line)?;
    let Some(position) = version(&line).and_then(position_for_version) else { return Ok(Vec::new()) };
    if bytes > MAX_BYTES {
        lines.seek(SeekFrom::Start(bytes - MAX_BYTES))?;
        // Skips the rest of a line whose beginning is not read.
        read_line(&mut lines, &mut line)?;
    }
    let wanted = index_by_hash(commands, position);
    // `take` is needed, because the file may grow while it is read.
    let entries = entries(&mut lines.take(MAX_BYTES), &wanted)?;
    Ok(build_edges(entries, &wanted))
}

/// Searches a log for the edges of commands, for `fuzz/`. Returns the outputs of each edge that is
/// found, with the index of its command.
#[cfg(fuzzing)]
pub fn fuzz_ninja_log(log: &[u8], commands: &[&[u8]]) -> Vec<(usize, Vec<Vec<u8>>)> {
    let numbered = commands.iter().enumerate();
    let numbered = numbered.map(|(number, command)| BuildCommand {
        launch: spawnscope_data::event::LaunchId(number as u64),
        hashes: hashes(command),
    });
    let commands: Vec<BuildCommand> = numbered.collect();
    let found = edges(io::Cursor::new(log), &commands).unwrap_or_default();
    let named = found.into_iter();
    named.map(|edge| (edge.launch.0 as usize, edge.outputs)).collect()
}

/// Maps each hash to its command; `None` if several commands have it.
fn index_by_hash(commands: &[BuildCommand], position: usize) -> HashMap<u64, Option<&BuildCommand>> {
    let mut wanted = HashMap::new();
    for command in commands {
        let only = wanted.entry(command.hashes[position]);
        only.and_modify(|only| *only = None).or_insert(Some(command));
    }
    wanted
}

/// Returns the outputs whose last line has one of these hashes.
fn entries<T>(lines: &mut impl BufRead, wanted: &HashMap<u64, T>) -> io::Result<HashMap<Vec<u8>, Entry>> {
    let mut entries: HashMap<Vec<u8>, Entry> = HashMap::new();
    let mut line = Vec::new();
    while read_line(lines, &mut line)? {
        let Some((output, entry)) = entry(&line) else { continue };
        if !wanted.contains_key(&entry.hash) {
            entries.remove(output);
        } else if let Some(known) = entries.get_mut(output) {
            *known = entry;
        } else if entries.len() < MAX_OUTPUTS {
            entries.insert(output.to_vec(), entry);
        }
    }
    Ok(entries)
}

fn build_edges(entries: HashMap<Vec<u8>, Entry>, wanted: &HashMap<u64, Option<&BuildCommand>>) -> Vec<Edge> {
    let mut by_hash: HashMap<u64, Vec<(Vec<u8>, Times)>> = HashMap::new();
    for (output, Entry { hash, times }) in entries {
        by_hash.entry(hash).or_default().push((output, times));
    }
    let edges = by_hash.into_iter().filter_map(|(hash, outputs)| {
        let command = wanted.get(&hash).copied().flatten()?;
        let is_one_edge = outputs.iter().all(|(_, times)| *times == outputs[0].1);
        let mut outputs: Vec<Vec<u8>> = outputs.into_iter().map(|(output, _)| output).collect();
        outputs.sort_unstable();
        outputs.truncate(MAX_OUTPUTS_OF_EDGE);
        is_one_edge.then_some(Edge { launch: command.launch, outputs })
    });
    let mut edges: Vec<Edge> = edges.collect();
    edges.sort_unstable_by_key(|edge| edge.launch);
    edges
}

/// Reads a line, without its newline. A line that is too long or has no newline becomes empty.
/// Returns whether there was a line.
fn read_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    if lines.take(MAX_LINE_BYTES).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.pop_if(|byte| *byte == b'\n').is_none() {
        // A line that ninja was writing when it was killed is incomplete, too.
        line.clear();
        lines.skip_until(b'\n')?;
    }
    Ok(true)
}

fn version(line: &[u8]) -> Option<u32> {
    parse(line.strip_prefix(b"# ninja log v")?)
}

fn entry(line: &[u8]) -> Option<(&[u8], Entry)> {
    let mut fields = line.split(|byte| *byte == b'\t');
    let times = [parse(fields.next()?)?, parse(fields.next()?)?];
    let (_mtime, output, hash) = (fields.next()?, fields.next()?, fields.next()?);
    let hash = u64::from_str_radix(str::from_utf8(hash).ok()?, 16).ok()?;
    let is_whole = fields.next().is_none() && !output.is_empty();
    is_whole.then_some((output, Entry { hash, times }))
}

fn parse<T: FromStr>(text: &[u8]) -> Option<T> {
    str::from_utf8(text).ok()?.parse().ok()
}

/// The seed that ninja gives to MurmurHash64A.
const SEED: u64 = 0xdeca_fbad_deca_fbad;

/// The hashes of one command by all algorithms. Which algorithm a log uses is known only when the
/// log is read.
pub(super) type Hashes = [u64; 2];

/// Hashes a command by MurmurHash64A and by rapidhash in its first version.
pub(super) fn hashes(command: &[u8]) -> Hashes {
    [murmur_64a(command), rapidhash_v1(command)]
}

/// Returns which of the `Hashes` a version of the log contains: MurmurHash64A in versions 5 (ninja
/// 1.2 to 1.11, and samurai) and 6 (1.12), rapidhash in version 7 (ninja 1.13).
fn position_for_version(version: u32) -> Option<usize> {
    match version {
        5 | 6 => Some(0),
        7 => Some(1),
        _ => None,
    }
}

/// Computes MurmurHash64A (MurmurHash2 with 64 bits, by Austin Appleby). The crates that implement
/// it are not maintained.
fn murmur_64a(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let word = mix(u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER));
        hash = (hash ^ word.wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(MULTIPLIER);
    }
    mix(mix(hash).wrapping_mul(MULTIPLIER))
}

fn mix(word: u64) -> u64 {
    word ^ (word >> 47)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use spawnscope_data::event::LaunchId;

    /// Returns launches of these commands, with ids from 1 on.
    fn commands(texts: &[&str]) -> Vec<BuildCommand> {
        let commands = texts.iter().zip(1..);
        commands.map(|(text, id)| BuildCommand { launch: LaunchId(id), hashes: hashes(text.as_bytes()) }).collect()
    }

    fn line(times: &str, output: &str, command: &str) -> String {
        let hash = hashes(command.as_bytes())[0];
        format!("{}\t1700\t{output}\t{hash:x}\n", times.replace(' ', "\t"))
    }

    fn found(log: &str, texts: &[&str]) -> Vec<(u64, String)> {
        let edges = edges(Cursor::new(log), &commands(texts)).unwrap();
        edges.iter().map(|edge| (edge.launch.0, String::from_utf8(edge.outputs.join(&b' ')).unwrap())).collect()
    }

    const VERSION_5: &str = "# ninja log v5\n";

    #[test]
    fn an_edge_is_found_by_the_hash_of_its_command() {
        let log = [
            VERSION_5.to_owned(),
            line("0 5", "a.o", "cc a.c"),
            line("1 9", "b.h", "generate b"),
            line("1 9", "b.c", "generate b"),
            line("3 9", "c.o", "cc c.c"),
        ]
        .concat();
        let texts = ["generate b", "cc a.c", "cc d.c"];
        assert_eq!(found(&log, &texts), [(1, "b.c b.h".into()), (2, "a.o".into())]);
        let version_6 = log.replace("v5", "v6");
        assert_eq!(found(&version_6, &texts).len(), 2);
        for version in ["v4", "v7", "v8", "v", "v5x", "v-5"] {
            assert_eq!(found(&log.replace("v5", version), &texts), [], "{version}");
        }
    }

    #[test]
    fn the_hashes_of_a_log_of_version_7_are_found() {
        let log = "# ninja log v7\n0\t5\t1700\to48\t455d961c4c6d883c\n";
        let command = ": abcdefghijklmnopqrstuvwxyz0123456789abcdefghij";
        assert_eq!(found(log, &[command]), [(1, "o48".into())]);
    }

    #[test]
    fn ambiguous_commands_have_no_edge() {
        let two_edges = [VERSION_5.to_owned(), line("0 5", "a", "true"), line("0 6", "b", "true")].concat();
        assert_eq!(found(&two_edges, &["true"]), []);
        let one_edge = [VERSION_5.to_owned(), line("0 5", "a", "true")].concat();
        assert_eq!(found(&one_edge, &["true"]), [(1, "a".into())]);
        assert_eq!(found(&one_edge, &["true", "true"]), [], "the edge may belong to either launch");
    }

    #[test]
    fn the_last_line_of_an_output_is_used() {
        let log = [
            VERSION_5.to_owned(),
            line("0 5", "a", "old"),
            line("0 7", "a", "new"),
            line("0 5", "b", "same"),
            line("7 9", "b", "same"),
        ]
        .concat();
        assert_eq!(found(&log, &["old", "new", "same"]), [(2, "a".into()), (3, "b".into())]);
    }

    #[test]
    fn lines_that_ninja_did_not_write_are_skipped() {
        let mut log = VERSION_5.to_owned();
        let good = line("0 5", "a", "true");
        let hash = good.rsplit('\t').next().unwrap();
        for bad in [
            "",
            "\n",
            "\t\t\t\t\n",
            "0\t5\t1\t\t",
            "x\t5\t1\ty\t",
            "0\t5\ty\t",
            "0\t5\t1\ty\tz\t",
            "0\t99999999999999999999\t1\ty\t",
        ] {
            log += &format!("{bad}{hash}");
        }
        log += &format!("0\t5\t1\t{}\t{hash}", "y".repeat(9_000));
        log += &good;
        assert_eq!(found(&log, &["true"]), [(1, "a".into())]);
        log += &line("9 9", "a", "other")[..20];
        assert_eq!(found(&log, &["true"]), [(1, "a".into())], "an incomplete line is skipped");
    }

    #[test]
    fn an_output_path_need_not_be_utf8() {
        let mut log = [VERSION_5.as_bytes(), b"0\t5\t1\ta\xff\xfe\t"].concat();
        log.extend(line("0 5", "a", "true").rsplit('\t').next().unwrap().bytes());
        let edges = edges(Cursor::new(log), &commands(&["true"])).unwrap();
        assert_eq!(edges[0].outputs, [b"a\xff\xfe"]);
        assert_eq!(found("", &["true"]), []);
        assert_eq!(found("SQLite format 3\0", &["true"]), []);
    }

    #[test]
    fn only_the_first_of_many_outputs_are_kept() {
        let lines = (0..100).map(|number| line("0 5", &format!("o{number:03}"), "true"));
        let log = std::iter::once(VERSION_5.to_owned()).chain(lines).collect::<String>();
        let edges = edges(Cursor::new(log), &commands(&["true"])).unwrap();
        assert_eq!(edges[0].outputs.len(), MAX_OUTPUTS_OF_EDGE);
        assert_eq!(edges[0].outputs[63], b"o063");
    }

    /// A huge log whose middle, lines of zeros, is generated as it is read.
    struct Huge {
        head: Vec<u8>,
        bytes: u64,
        tail: Vec<u8>,
        at: u64,
        read: u64,
    }

    impl Read for Huge {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.bytes.saturating_sub(self.at).min(buffer.len() as u64);
            for (byte, at) in buffer.iter_mut().zip(self.at..self.at + length) {
                let from_tail = (at + self.tail.len() as u64).checked_sub(self.bytes);
                let part = from_tail.map_or((&self.head, at), |at| (&self.tail, at));
                let filler = if at % 64 == 0 { b'\n' } else { b'0' };
                *byte = part.0.get(part.1 as usize).copied().unwrap_or(filler);
            }
            self.at += length;
            self.read += length;
            Ok(length as usize)
        }
    }

    impl Seek for Huge {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.at = match to {
                SeekFrom::Start(at) => at,
                SeekFrom::End(back) => self.bytes.saturating_add_signed(back),
                SeekFrom::Current(by) => self.at.saturating_add_signed(by),
            };
            Ok(self.at)
        }
    }

    #[test]
    fn only_the_end_of_a_huge_log_is_read() {
        let head = [VERSION_5.to_owned(), line("0 5", "first", "one")].concat();
        let mut log = Huge {
            head: head.into_bytes(),
            bytes: MAX_BYTES + (1 << 40),
            tail: format!("\n{}", line("0 5", "last", "two")).into_bytes(),
            at: 0,
            read: 0,
        };
        let edges = edges(&mut log, &commands(&["one", "two"])).unwrap();
        assert_eq!((edges.len(), edges[0].launch), (1, LaunchId(2)));
        assert!(log.read <= MAX_BYTES + (1 << 20), "{} bytes", log.read);
    }

    /// The length of a command and its two hashes, from logs that ninja 1.11.1 (version 5) and
    /// 1.13.0 (version 7) wrote.
    const NINJA_HASHES: [(usize, u64, u64); 18] = [
        (1, 0x2e49_d247_7c67_37f0, 0xa2da_2232_1247_804b),
        (2, 0x98fe_9d46_8fef_ab13, 0x4a48_0f4c_6395_d231),
        (3, 0xf2d1_360f_1675_bfb3, 0xbae9_8016_6742_c4ce),
        (4, 0x0ec0_1832_4a11_ce21, 0x97e0_d095_040a_ee0d),
        (7, 0x50c2_e91e_d79a_6745, 0x6aad_1433_7fb3_8b85),
        (8, 0x6159_3a6f_e38b_a7e8, 0x8f50_7c8a_c267_7406),
        (9, 0x75d8_e4b2_8913_5098, 0xa6e8_9124_06dd_ebf5),
        (16, 0x6cf4_06fe_306b_52f8, 0x8732_a2ee_5bb4_306c),
        (17, 0xc7c6_fa71_0cc5_a22e, 0x4fa7_e778_2158_064d),
        (32, 0xc6d4_4dd0_ef67_693b, 0xc54d_4bdf_32df_7f1b),
        (33, 0x14aa_4dd4_657f_1303, 0x09f6_452e_1412_2fc7),
        (47, 0x590d_3c88_7b0a_e1e4, 0x9907_cd61_2174_cf8d),
        (48, 0xe4fb_3650_07e9_1501, 0x455d_961c_4c6d_883c),
        (49, 0xfe19_bd53_895b_37ac, 0x8a31_5988_6f78_5aba),
        (95, 0x75ff_f330_b007_0b1d, 0x6798_cbc3_2f1a_9838),
        (96, 0x07ee_38df_9969_e7f3, 0x9e1a_a02e_7d3c_dc4f),
        (97, 0x2c70_93fd_263c_f60c, 0x0b80_82f6_b6e0_f6b7),
        (129, 0x4008_d9d0_6031_f684, 0x73da_30f1_e4ac_d4f2),
    ];

    #[test]
    fn hashes_equal_those_of_ninja() {
        let text = format!(": {}", "abcdefghijklmnopqrstuvwxyz0123456789".repeat(4));
        for (length, murmur, rapid) in NINJA_HASHES {
            assert_eq!(hashes(&text.as_bytes()[..length]), [murmur, rapid], "{length} bytes");
        }
    }

    #[test]
    fn each_version_has_its_algorithm() {
        assert_eq!([5, 6, 7].map(position_for_version), [Some(0), Some(0), Some(1)]);
        assert_eq!([0, 4, 8].map(position_for_version), [None; 3], "version 4 contained the commands themselves");
    }
}
