//! The unwind tables of an ELF file (.eh_frame, .debug_frame): how to get from a place in its code to the caller.

use std::cell::OnceCell;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EhFrameHdr, Encoding, EndianSlice, FrameDescriptionEntry,
    LittleEndian, Register, RegisterRule, UnwindContext, UnwindSection, X86_64,
};
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ReadRef};

pub(super) type Slice<'data> = EndianSlice<'data, LittleEndian>;

/// How to find the caller of one place.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// Where the frame begins: the stack pointer before the call.
    pub(super) frame: CfaRule<usize>,
    /// Where the caller's registers are; those that are not named have not changed.
    pub(super) registers: Vec<(Register, RegisterRule<usize>)>,
    /// How expressions in the rules are encoded.
    pub(super) encoding: Encoding,
    /// Whether the kernel called it: its caller was interrupted, not calling.
    pub(super) is_signal: bool,
    in_debug_frame: bool,
}

/// A section and its address.
struct Data {
    address: u64,
    bytes: Vec<u8>,
}

/// The sections of one file.
pub(super) struct Tables {
    bases: BaseAddresses,
    eh_frame: Option<Data>,
    eh_frame_header: Option<Data>,
    debug_frame: Option<Data>,
    /// Offsets of the entries, by the first address they are for; made when there is no header.
    eh_frame_index: OnceCell<Vec<(u64, usize)>>,
    debug_frame_index: OnceCell<Vec<(u64, usize)>>,
}

impl Tables {
    pub(super) fn read<'data, R: ReadRef<'data>>(elf: &ElfFile64<'data, Endianness, R>) -> Tables {
        let data = |name: &str| {
            let section = elf.section_by_name(name)?;
            Some(Data {
                address: section.address(),
                bytes: section.uncompressed_data().ok()?.into_owned(),
            })
        };
        let address = |name: &str| elf.section_by_name(name).map_or(0, |section| section.address());
        Tables {
            bases: BaseAddresses::default()
                .set_eh_frame(address(".eh_frame"))
                .set_eh_frame_hdr(address(".eh_frame_hdr"))
                .set_text(address(".text"))
                .set_got(address(".got")),
            eh_frame: data(".eh_frame"),
            eh_frame_header: data(".eh_frame_hdr"),
            debug_frame: data(".debug_frame"),
            eh_frame_index: OnceCell::new(),
            debug_frame_index: OnceCell::new(),
        }
    }

    /// The rule for an address; `None` where the tables say nothing, or nothing that can be understood.
    pub(super) fn rule(&self, address: u64, context: &mut UnwindContext<usize>) -> Option<Rule> {
        self.rule_of_eh_frame(address, context)
            .or_else(|| self.rule_of_debug_frame(address, context))
    }

    /// The section in which the expressions of a rule are.
    pub(super) fn with_expressions_of<T>(&self, rule: &Rule, look: impl FnOnce(Slice<'_>) -> T) -> Option<T> {
        let data = if rule.in_debug_frame {
            &self.debug_frame
        } else {
            &self.eh_frame
        };
        data.as_ref().map(|data| look(Slice::new(&data.bytes, LittleEndian)))
    }

    fn rule_of_eh_frame(&self, address: u64, context: &mut UnwindContext<usize>) -> Option<Rule> {
        let section = EhFrame::new(&self.eh_frame.as_ref()?.bytes, LittleEndian);
        let offset = self.offset_by_header(address).or_else(|| {
            let index = self.eh_frame_index.get_or_init(|| index(&section, &self.bases));
            last_up_to(index, address)
        })?;
        let entry = section.fde_from_offset(&self.bases, offset.into(), EhFrame::cie_from_offset);
        rule_of_entry(&entry.ok()?, &section, &self.bases, address, context)
    }

    fn rule_of_debug_frame(&self, address: u64, context: &mut UnwindContext<usize>) -> Option<Rule> {
        let section = DebugFrame::new(&self.debug_frame.as_ref()?.bytes, LittleEndian);
        let index = self.debug_frame_index.get_or_init(|| index(&section, &self.bases));
        let offset = last_up_to(index, address)?;
        let entry = section.fde_from_offset(&self.bases, offset.into(), DebugFrame::cie_from_offset);
        let rule = rule_of_entry(&entry.ok()?, &section, &self.bases, address, context)?;
        Some(Rule {
            in_debug_frame: true,
            ..rule
        })
    }

    /// By the table that the linker sorted.
    fn offset_by_header(&self, address: u64) -> Option<usize> {
        let header = EhFrameHdr::new(&self.eh_frame_header.as_ref()?.bytes, LittleEndian);
        let header = header.parse(&self.bases, 8).ok()?;
        let entry = header.table()?.lookup(address, &self.bases).ok()?.direct().ok()?;
        usize::try_from(entry.checked_sub(self.eh_frame.as_ref()?.address)?).ok()
    }
}

fn last_up_to(index: &[(u64, usize)], address: u64) -> Option<usize> {
    let behind = index.partition_point(|&(first, _)| first <= address);
    index.get(behind.checked_sub(1)?).map(|&(_, offset)| offset)
}

/// All entries up to the first that cannot be understood.
fn index<'data, S: UnwindSection<Slice<'data>>>(section: &S, bases: &BaseAddresses) -> Vec<(u64, usize)> {
    let mut found = Vec::new();
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry {
            let Ok(entry) = partial.parse(S::cie_from_offset) else {
                break;
            };
            found.push((entry.initial_address(), entry.offset()));
        }
    }
    found.sort_unstable();
    found
}

fn rule_of_entry<'data, S: UnwindSection<Slice<'data>>>(
    entry: &FrameDescriptionEntry<Slice<'data>>,
    section: &S,
    bases: &BaseAddresses,
    address: u64,
    context: &mut UnwindContext<usize>,
) -> Option<Rule> {
    if !entry.contains(address) || entry.cie().return_address_register() != X86_64::RA {
        return None;
    }
    let row = entry.unwind_info_for_address(section, bases, context, address).ok()?;
    Some(Rule {
        frame: row.cfa().clone(),
        registers: row
            .registers()
            .map(|(register, rule)| (*register, rule.clone()))
            .collect(),
        encoding: entry.cie().encoding(),
        is_signal: entry.is_signal_trampoline(),
        in_debug_frame: false,
    })
}
