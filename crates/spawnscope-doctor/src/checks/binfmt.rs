//! binfmt_misc: interpreters, such as emulators and language runtimes, that the kernel starts for certain kinds of files.

use super::{Check, Run};
use crate::{Examination, Finding, Findings, Machine};
use spawnscope_data::units;
use spawnscope_system::arch::ELF_MACHINE;

pub(super) const CHECK: Check = Check {
    id: "binfmt",
    examines: "binfmt_misc: interpreters that the kernel starts for file types",
    run: Run::Reading(run),
};

const DIRECTORY: &str = "/proc/sys/fs/binfmt_misc";
/// Where Debian's `update-binfmts` stores its registrations, one file each.
const DEBIAN_REGISTRY: &str = "/var/lib/binfmts";
/// Where systemd reads its registrations. A file overrides files of the same name in later directories.
const CONFIGURATION_DIRECTORIES: [&str; 4] =
    ["/etc/binfmt.d", "/run/binfmt.d", "/usr/local/lib/binfmt.d", "/usr/lib/binfmt.d"];
/// Bytes 18 and 19 of this machine's ELF files.
const NATIVE_MACHINE: [u8; 2] = ELF_MACHINE.to_le_bytes();

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    if machine.text(format!("{DIRECTORY}/status")).as_deref() == Some("disabled") {
        return;
    }
    let names = machine.names(DIRECTORY).into_iter().filter(|name| name != "register" && name != "status");
    let entries: Vec<Entry> = names.filter_map(|name| Entry::read(machine, name)).collect();
    for entry in &entries {
        entry.report(examination, findings);
    }
    let emulators: Vec<&str> = entries
        .iter()
        .filter(|entry| entry.name.starts_with("qemu-") && entry.can_start(machine))
        .map(|entry| entry.name.as_str())
        .collect();
    if !emulators.is_empty() {
        let architectures = units::counted(emulators.len() as u64, "other architecture", "other architectures");
        findings.add(
            Finding::note(format!("programs for {architectures} are emulated"))
                .evidence(format!("registered: {}", emulators.join(", ")))
                .evidence("each launch of such a program starts an emulator first, which then emulates the whole program")
                .fix("in containers, use images for this machine's own architecture; `uname -m` in the container shows the architecture of the image")
                .fix_cost("nothing"),
        );
    }
}

struct Entry {
    name: String,
    interpreter: String,
    flags: String,
    offset: usize,
    magic: Vec<u8>,
    mask: Vec<u8>,
}

impl Entry {
    /// Reads an entry; returns `None` if it is disabled.
    fn read(machine: &Machine, name: String) -> Option<Entry> {
        let text = machine.text(format!("{DIRECTORY}/{name}"))?;
        let mut lines = text.lines();
        if lines.next()? != "enabled" {
            return None;
        }
        let value =
            |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim().to_owned());
        Some(Entry {
            name,
            interpreter: value("interpreter ")?,
            flags: value("flags:").unwrap_or_default(),
            offset: value("offset ").and_then(|offset| offset.parse().ok()).unwrap_or_default(),
            magic: value("magic ").map_or(Vec::new(), |digits| bytes(&digits)),
            mask: value("mask ").map_or(Vec::new(), |digits| bytes(&digits)),
        })
    }

    /// Returns whether the kernel can start the interpreter. With the flag F, the kernel keeps it open, so its file need not exist.
    fn can_start(&self, machine: &Machine) -> bool {
        self.flags.contains('F') || machine.exists(&self.interpreter)
    }

    fn report(&self, examination: &Examination<'_>, findings: &mut Findings) {
        if !self.can_start(examination.machine) {
            let finding = Finding::problem(format!("the interpreter of {} does not exist", self.name))
                .evidence(format!("{DIRECTORY}/{} names {}", self.name, self.interpreter))
                .evidence("files of this type fail to execute with \"No such file or directory\", although they exist")
                .fix("install the interpreter, or remove the registration:");
            findings.add(
                self.with_removal(finding, examination)
                    .fix_cost("an edit; without the interpreter, files of this type still do not execute"),
            );
        }
        if self.matches_native_programs() {
            let finding = Finding::problem(format!("{} takes over native programs", self.name))
                .evidence(format!("{DIRECTORY}/{}: native programs are passed to {}", self.name, self.interpreter))
                .fix("unless it was registered on purpose, remove it:");
            findings.add(self.with_removal(finding, examination).fix_cost("an edit"));
        }
    }

    fn with_removal(&self, finding: Finding, examination: &Examination<'_>) -> Finding {
        self.removal(examination).into_iter().fold(finding, Finding::fix)
    }

    /// Returns how to remove the entry until the next boot and, if its source is known, permanently.
    fn removal(&self, examination: &Examination<'_>) -> Vec<String> {
        let machine = examination.machine;
        let mut lines = vec![
            format!("until the next boot, {}:", examination.environment.where_settings_are_made()),
            format!("  echo -1 >{}", quoted(&format!("{DIRECTORY}/{}", self.name))),
        ];
        if machine.exists(format!("{DEBIAN_REGISTRY}/{}", self.name)) {
            lines.push("permanently, in Debian's registry:".to_owned());
            lines.push(format!("  update-binfmts --disable {}", quoted(&self.name)));
        }
        let files = CONFIGURATION_DIRECTORIES.iter().flat_map(|directory| {
            let names = machine.names(directory).into_iter().filter(|name| name.ends_with(".conf"));
            names.map(move |name| format!("{directory}/{name}"))
        });
        for file in files.filter(|file| self.is_named_in(machine, file)) {
            let name = file.rsplit('/').next().unwrap_or_default();
            lines.push(match file.starts_with(CONFIGURATION_DIRECTORIES[0]) {
                true => format!("permanently, remove it from {file}"),
                false => format!(
                    "permanently, override {file} with a file that lacks it: {}/{name}",
                    CONFIGURATION_DIRECTORIES[0]
                ),
            });
        }
        lines
    }

    fn is_named_in(&self, machine: &Machine, file: &str) -> bool {
        let text = machine.text(file).unwrap_or_default();
        // The first character of a line is its separator.
        let mut names = text.lines().filter_map(|line| line.split(line.chars().next()?).nth(1));
        names.any(|name| name == self.name)
    }

    /// Returns whether the magic matches the first 20 bytes of a native ELF executable. A magic that covers later bytes does not match.
    fn matches_native_programs(&self) -> bool {
        let mut header = [0_u8; 20];
        header[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1]);
        header[16] = 2;
        header[18..].copy_from_slice(&NATIVE_MACHINE);
        let fits = self.magic.iter().enumerate().all(|(index, byte)| {
            let mask = self.mask.get(index).copied().unwrap_or(0xff);
            header.get(self.offset + index).is_some_and(|native| native & mask == byte & mask)
        });
        !self.magic.is_empty() && fits
    }
}

fn quoted(text: &str) -> String {
    shlex::try_quote(text).map_or_else(|_| text.to_owned(), Into::into)
}

/// Decodes pairs of hexadecimal digits.
fn bytes(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
