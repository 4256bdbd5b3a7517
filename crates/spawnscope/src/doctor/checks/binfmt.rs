//! Interpreters that the kernel starts for files of certain kinds (binfmt_misc): emulators, run times.

use super::{Check, Run};
use crate::arch::ELF_MACHINE;
use crate::doctor::{Examination, Finding, Findings, Machine};
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "binfmt",
    looks_at: "binfmt_misc: interpreters that the kernel starts for kinds of files",
    run: Run::Looking(run),
};

const FOLDER: &str = "/proc/sys/fs/binfmt_misc";
/// Where Debian's `update-binfmts` keeps what it registers, a file each.
const DEBIANS: &str = "/var/lib/binfmts";
/// Where systemd reads from what it registers: files in the first cover those of the same name in others.
const CONFIGURED: [&str; 4] = [
    "/etc/binfmt.d",
    "/run/binfmt.d",
    "/usr/local/lib/binfmt.d",
    "/usr/lib/binfmt.d",
];
/// Bytes 18 and 19 of ELF files of this machine.
const OWN_MACHINE: [u8; 2] = ELF_MACHINE.to_le_bytes();

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    if machine.text(format!("{FOLDER}/status")).as_deref() == Some("disabled") {
        return;
    }
    let names = machine
        .names(FOLDER)
        .into_iter()
        .filter(|name| name != "register" && name != "status");
    let entries: Vec<Entry> = names.filter_map(|name| Entry::read(machine, name)).collect();
    for entry in &entries {
        entry.look(examination, findings);
    }
    let emulators: Vec<&str> = entries
        .iter()
        .filter(|entry| entry.name.starts_with("qemu-") && entry.can_start(machine))
        .map(|entry| entry.name.as_str())
        .collect();
    if !emulators.is_empty() {
        let processors = units::counted(emulators.len() as u64, "other processor", "other processors");
        findings.add(
            Finding::note(format!("programs of {processors} are emulated"))
                .evidence(format!("registered: {}", emulators.join(", ")))
                .evidence("each launch of such a program starts an emulator first, and all its work is emulated")
                .fix("in containers, take images of this machine's own processor; `uname -m` in the container shows which it is")
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
    /// One that is enabled.
    fn read(machine: &Machine, name: String) -> Option<Entry> {
        let text = machine.text(format!("{FOLDER}/{name}"))?;
        let mut lines = text.lines();
        if lines.next()? != "enabled" {
            return None;
        }
        let value = |key: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(key))
                .map(|value| value.trim().to_owned())
        };
        Some(Entry {
            name,
            interpreter: value("interpreter ")?,
            flags: value("flags:").unwrap_or_default(),
            offset: value("offset ")
                .and_then(|offset| offset.parse().ok())
                .unwrap_or_default(),
            magic: value("magic ").map_or(Vec::new(), |digits| bytes(&digits)),
            mask: value("mask ").map_or(Vec::new(), |digits| bytes(&digits)),
        })
    }

    /// With the flag F, the kernel keeps the interpreter open.
    fn can_start(&self, machine: &Machine) -> bool {
        self.flags.contains('F') || machine.exists(&self.interpreter)
    }

    fn look(&self, examination: &Examination<'_>, findings: &mut Findings) {
        let with_removal = |finding: Finding| self.removal(examination).into_iter().fold(finding, Finding::fix);
        if !self.can_start(examination.machine) {
            let finding = Finding::problem(format!("the interpreter of {} is not there", self.name))
                .evidence(format!("{FOLDER}/{} names {}", self.name, self.interpreter))
                .evidence(
                    "files of that kind fail to execute: \"No such file or directory\", although the file is there",
                )
                .fix("install the interpreter, or remove what names it:");
            findings.add(with_removal(finding).fix_cost("an edit, and files of that kind do not execute"));
        }
        if self.takes_own_programs() {
            let finding = Finding::problem(format!("{} takes over this machine's own programs", self.name))
                .evidence(format!(
                    "{FOLDER}/{}: files of this processor's kind are given to {}",
                    self.name, self.interpreter
                ))
                .fix("unless it is there on purpose, remove it:");
            findings.add(with_removal(finding).fix_cost("an edit"));
        }
    }

    /// How it goes until the next start of the machine, and how it stays away, as far as it can be seen what registers it.
    fn removal(&self, examination: &Examination<'_>) -> Vec<String> {
        let machine = examination.machine;
        let quoted = |text: &str| shlex::try_quote(text).map_or_else(|_| text.to_owned(), Into::into);
        let mut lines = vec![
            format!("now, {}:", examination.environment.where_settings_are_made()),
            format!("  echo -1 >{}", quoted(&format!("{FOLDER}/{}", self.name))),
        ];
        if machine.exists(format!("{DEBIANS}/{}", self.name)) {
            lines.push("for good, in Debian's list:".to_owned());
            lines.push(format!("  update-binfmts --disable {}", quoted(&self.name)));
        }
        let registers = |file: &String| {
            let text = machine.text(file).unwrap_or_default();
            // The first character of a line separates its parts.
            let mut names = text.lines().filter_map(|line| line.split(line.chars().next()?).nth(1));
            names.any(|name| name == self.name)
        };
        let files = CONFIGURED.iter().flat_map(|folder| {
            let names = machine.names(folder).into_iter().filter(|name| name.ends_with(".conf"));
            names.map(move |name| format!("{folder}/{name}"))
        });
        for file in files.filter(registers) {
            let name = file.rsplit('/').next().unwrap_or_default();
            lines.push(match file.starts_with(CONFIGURED[0]) {
                true => format!("for good, take it out of {file}"),
                false => format!(
                    "for good, cover {file} with a file of that name without it: {}/{name}",
                    CONFIGURED[0]
                ),
            });
        }
        lines
    }

    /// Whether its magic fits an ELF file of this machine as far as it goes.
    fn takes_own_programs(&self) -> bool {
        let mut header = [0_u8; 20];
        header[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1]);
        header[16] = 2;
        header[18..].copy_from_slice(&OWN_MACHINE);
        let fits = |(place, byte): (usize, &u8)| {
            let mask = self.mask.get(place).copied().unwrap_or(0xff);
            header
                .get(self.offset + place)
                .is_some_and(|own| own & mask == byte & mask)
        };
        !self.magic.is_empty() && self.magic.iter().enumerate().all(fits)
    }
}

fn bytes(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs
        .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}
