//! The executable mappings of processes. BPF programs report them, or else they are read from
//! /proc.

use std::fs;
use std::rc::Rc;
use std::sync::Arc;

use super::files;
use spawnscope_data::event::Pid;

/// The number of one version of a process's mappings. After each change, they have a new number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ImageId(pub(crate) u64);

/// Identifies a file and its version: a new file may soon reuse the inode number, so the
/// modification time is part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    /// The device of the file system, encoded as in the kernel: major << 20 | minor.
    pub(crate) device: u32,
    pub(crate) inode: u64,
    /// The modification time in nanoseconds since 1970. If `None`, it is unknown, and any file with
    /// this inode number may be the file.
    pub(crate) modified: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MappedFile {
    /// The file's identity.
    pub(crate) id: FileId,
    /// The path from the root directory of the process.
    pub(crate) path: Arc<[u8]>,
}

/// A range of executable memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// First address.
    pub(crate) start: u64,
    /// The address after the last one.
    pub(crate) end: u64,
    /// The file offset of `start`, in bytes.
    pub(crate) offset: u64,
    /// The mapped file; `None` for code that the process or the kernel generated.
    pub(crate) file: Option<MappedFile>,
}

/// All executable mappings of a process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Image {
    /// In ascending order.
    pub(super) mappings: Vec<Rc<Mapping>>,
}

impl Image {
    /// Adds a mapping. BPF programs report mappings in ascending order.
    pub(super) fn add(&mut self, mapping: Mapping) {
        self.mappings.push(Rc::new(mapping));
    }

    pub(super) fn find(&self, address: u64) -> Option<&Rc<Mapping>> {
        let end = self.mappings.partition_point(|mapping| mapping.start <= address);
        let mapping = self.mappings.get(end.checked_sub(1)?)?;
        (address < mapping.end).then_some(mapping)
    }

    /// Returns an image of mappings, which must be in ascending order.
    pub(super) fn with_mappings(mappings: Vec<Mapping>) -> Image {
        Image { mappings: mappings.into_iter().map(Rc::new).collect() }
    }
}

/// Reads the executable mappings of a process, if it still runs the program whose stack exec put at
/// `start_stack`. The result is never empty.
pub(super) fn read(pid: Pid, start_stack: u64) -> Option<Vec<Mapping>> {
    let maps = fs::read(format!("/proc/{}/maps", pid.0)).ok()?;
    let mut mappings: Vec<Mapping> = maps.split(|&byte| byte == b'\n').filter_map(parse_mapping).collect();
    mappings.iter_mut().for_each(|mapping| files::add_modification_time(pid, mapping));
    // Check this last, so that an exec in the meantime is noticed.
    let is_same_program = stack_of_program(pid)? == start_stack;
    (is_same_program && !mappings.is_empty()).then_some(mappings)
}

/// Returns `startstack` of /proc/PID/stat, which is field 28, counted from 1. The process name, an
/// earlier field, may contain any character.
pub(super) fn stack_of_program(pid: Pid) -> Option<u64> {
    let stat = fs::read(format!("/proc/{}/stat", pid.0)).ok()?;
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let fields = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    fields.split_ascii_whitespace().nth(25)?.parse().ok()
}

/// Parses a line such as `5583a000-5583b000 r-xp 00001000 fe:01 1234    /usr/bin/x (deleted)`.
/// Returns `None` if the mapping is not executable.
fn parse_mapping(line: &[u8]) -> Option<Mapping> {
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let mut texts = fields.by_ref().map_while(|field| std::str::from_utf8(field).ok());
    let (start, end) = texts.next()?.split_once('-')?;
    let permissions = texts.next()?;
    let offset = parse_hexadecimal(texts.next()?)?;
    let (major, minor) = texts.next()?.split_once(':')?;
    let inode = texts.next()?.parse().ok()?;
    let path = fields.next().unwrap_or_default().trim_ascii_start();
    let file = (inode != 0).then(|| {
        Some(MappedFile {
            id: FileId {
                device: u32::try_from(parse_hexadecimal(major)? << 20 | parse_hexadecimal(minor)?).ok()?,
                inode,
                modified: None,
            },
            path: path.strip_suffix(b" (deleted)").unwrap_or(path).into(),
        })
    });
    permissions.contains('x').then_some(Mapping {
        start: parse_hexadecimal(start)?,
        end: parse_hexadecimal(end)?,
        offset,
        file: file.flatten(),
    })
}

fn parse_hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn only_executable_mappings_are_read_from_maps() {
        let line = b"7f00a000-7f00c000 r-xp 00001000 fe:01 1234                       /opt/a b (deleted)";
        let read = parse_mapping(line).unwrap();
        assert_eq!((read.start, read.end, read.offset), (0x7f00_a000, 0x7f00_c000, 0x1000));
        let file = read.file.unwrap();
        assert_eq!(&*file.path, b"/opt/a b");
        assert_eq!((file.id.device, file.id.inode), (0xfe << 20 | 1, 1234));
        assert_eq!(parse_mapping(b"7f00a000-7f00c000 r--p 00001000 fe:01 1234   /opt/a"), None);
        let made = parse_mapping(b"7f00a000-7f00c000 rwxp 00000000 00:00 0 ").unwrap();
        assert_eq!(made.file, None);
        assert_eq!(parse_mapping(b""), None);
    }

    #[test]
    fn the_mapping_of_an_address_is_found() {
        let [first, second] =
            [0x1000, 0x4000].map(|start| Mapping { start, end: start + 0x1000, offset: 0, file: None });
        let mut image = Image::with_mappings(vec![first]);
        image.add(second);
        assert_eq!(
            [0xfff, 0x1000, 0x1fff, 0x2000, 0x4fff].map(|address| image.find(address).map(|mapping| mapping.start)),
            [None, Some(0x1000), Some(0x1000), None, Some(0x4000)]
        );
    }

    #[test]
    fn mappings_are_not_read_once_another_program_runs_in_the_process() {
        let own = Pid(std::process::id().cast_signed());
        let start = stack_of_program(own).unwrap();
        let image = Image::with_mappings(read(own, start).unwrap());
        let here = stack_of_program as *const () as u64;
        let file = image.find(here).unwrap().file.as_ref().unwrap();
        let found = fs::metadata("/proc/self/exe").unwrap();
        let modified = found.mtime() as u64 * 1_000_000_000 + found.mtime_nsec() as u64;
        assert_eq!(file.id.modified, Some(modified), "another file may reuse its inode");
        assert_eq!(read(own, start + 16), None);
    }
}
