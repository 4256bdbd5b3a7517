//! Reads the unwind tables of an ELF file (.eh_frame, .debug_frame), which say how to find the
//! caller of a frame from an address in its code.

use std::cell::OnceCell;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, Encoding, EndianSlice, FrameDescriptionEntry, LittleEndian,
    Register, RegisterRule, UnwindContext, UnwindSection,
};
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ReadRef};

use super::bounded::MAX_BYTES;
use super::processor::{RETURN_ADDRESS, VENDOR};

pub(super) type Slice<'data> = EndianSlice<'data, LittleEndian>;

/// How to find the caller of a frame at one address.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// How to compute the start of the frame (CFA), which is the stack pointer before the call.
    pub(super) frame: CfaRule<usize>,
    /// Where the caller's registers are. Registers without a rule are unchanged.
    pub(super) registers: Vec<(Register, RegisterRule<usize>)>,
    /// How expressions in the rules are encoded.
    pub(super) encoding: Encoding,
    /// Whether this is a signal frame, which the kernel has built: the caller was interrupted, and
    /// did not call.
    pub(super) is_signal: bool,
    is_in_debug_frame: bool,
}

struct Section {
    address: u64,
    bytes: Vec<u8>,
}

impl Section {
    fn read<'data, R: ReadRef<'data>>(elf: &ElfFile64<'data, Endianness, R>, name: &str) -> Option<Section> {
        let section = elf.section_by_name(name)?;
        if section.compressed_file_range().ok()?.uncompressed_size > MAX_BYTES {
            return None;
        }
        Some(Section { address: section.address(), bytes: section.uncompressed_data().ok()?.into_owned() })
    }

    /// Returns the address that is stored in the section as a 32-bit distance from its start.
    fn address_at_distance(&self, distance: &[u8]) -> Option<u64> {
        let distance = i32::from_le_bytes(*distance.first_chunk()?);
        self.address.checked_add_signed(distance.into())
    }
}

/// The sections of one file.
pub(super) struct Tables {
    bases: BaseAddresses,
    eh_frame: Option<Section>,
    eh_frame_header: Option<Section>,
    debug_frame: Option<Section>,
    /// Start addresses and offsets of the entries, by start address. Built once the header is
    /// missing or has no entry for an address.
    eh_frame_index: OnceCell<Vec<(u64, usize)>>,
    /// Start addresses and offsets of the entries, by start address.
    debug_frame_index: OnceCell<Vec<(u64, usize)>>,
}

impl Tables {
    pub(super) fn read<'data, R: ReadRef<'data>>(elf: &ElfFile64<'data, Endianness, R>) -> Tables {
        let [eh_frame, eh_frame_header, text, got] = [".eh_frame", ".eh_frame_hdr", ".text", ".got"]
            .map(|name| elf.section_by_name(name).map_or(0, |section| section.address()));
        Tables {
            bases: BaseAddresses::default()
                .set_eh_frame(eh_frame)
                .set_eh_frame_hdr(eh_frame_header)
                .set_text(text)
                .set_got(got),
            eh_frame: Section::read(elf, ".eh_frame"),
            eh_frame_header: Section::read(elf, ".eh_frame_hdr"),
            debug_frame: Section::read(elf, ".debug_frame"),
            eh_frame_index: OnceCell::new(),
            debug_frame_index: OnceCell::new(),
        }
    }

    /// Whether the file has no tables.
    pub(super) fn is_empty(&self) -> bool {
        self.eh_frame.is_none() && self.debug_frame.is_none()
    }

    /// Whether the file has a .debug_frame that could be read.
    #[cfg(test)]
    pub(super) fn has_debug_frame(&self) -> bool {
        self.debug_frame.is_some()
    }

    /// Returns the rule for an address; `None` if the tables have no rule, or none that can be
    /// parsed.
    pub(super) fn rule(&self, address: u64, context: &mut UnwindContext<usize>) -> Option<Rule> {
        self.rule_in_eh_frame(address, context).or_else(|| self.rule_in_debug_frame(address, context))
    }

    /// Calls `evaluate` with the section that contains the expressions of a rule.
    pub(super) fn with_expressions_of<T>(&self, rule: &Rule, evaluate: impl FnOnce(Slice<'_>) -> T) -> Option<T> {
        let data = if rule.is_in_debug_frame { &self.debug_frame } else { &self.eh_frame };
        data.as_ref().map(|data| evaluate(Slice::new(&data.bytes, LittleEndian)))
    }

    fn rule_in_eh_frame(&self, address: u64, context: &mut UnwindContext<usize>) -> Option<Rule> {
        let section = eh_frame(self.eh_frame.as_ref()?);
        let offset = self.offset_by_header(address).or_else(|| {
            let index = self.eh_frame_index.get_or_init(|| index(&section, &self.bases));
            last_entry_up_to(index, address)
        })?;
        let entry = section.fde_from_offset(&self.bases, offset.into(), EhFrame::cie_from_offset);
        rule_of_entry(&entry.ok()?, &section, &self.bases, address, context)
    }

    fn rule_in_debug_frame(&self, address: u64, context: &mut UnwindContext<usize>) -> Option<Rule> {
        let mut section = DebugFrame::new(&self.debug_frame.as_ref()?.bytes, LittleEndian);
        section.set_vendor(VENDOR);
        let index = self.debug_frame_index.get_or_init(|| index(&section, &self.bases));
        let offset = last_entry_up_to(index, address)?;
        let entry = section.fde_from_offset(&self.bases, offset.into(), DebugFrame::cie_from_offset);
        let rule = rule_of_entry(&entry.ok()?, &section, &self.bases, address, context)?;
        Some(Rule { is_in_debug_frame: true, ..rule })
    }

    /// Returns the offset of an entry, from the sorted table that the linker makes. After a header,
    /// the table has pairs of 32-bit addresses, of code and of its entry, relative to the table's
    /// own address. No linker uses another encoding. gimli's lookup is not used, because it trusts
    /// the number of pairs.
    fn offset_by_header(&self, address: u64) -> Option<usize> {
        const HEAD: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
        let header = self.eh_frame_header.as_ref()?;
        let rows = header.bytes.strip_prefix(&HEAD)?.get(8..)?.as_chunks::<8>().0;
        let end = rows.partition_point(|row| header.address_at_distance(row).is_some_and(|first| first <= address));
        let entry = header.address_at_distance(&rows.get(end.checked_sub(1)?)?[4..])?;
        usize::try_from(entry.checked_sub(self.eh_frame.as_ref()?.address)?).ok()
    }
}

fn eh_frame(data: &Section) -> EhFrame<Slice<'_>> {
    let mut section = EhFrame::new(&data.bytes, LittleEndian);
    section.set_vendor(VENDOR);
    section
}

fn last_entry_up_to(index: &[(u64, usize)], address: u64) -> Option<usize> {
    let end = index.partition_point(|&(first, _)| first <= address);
    index.get(end.checked_sub(1)?).map(|&(_, offset)| offset)
}

/// Returns all entries up to the first one that cannot be parsed.
fn index<'data, S: UnwindSection<Slice<'data>>>(section: &S, bases: &BaseAddresses) -> Vec<(u64, usize)> {
    let mut found = Vec::new();
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry {
            let Ok(entry) = partial.parse(S::cie_from_offset) else { break };
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
    if !entry.contains(address) || entry.cie().return_address_register() != RETURN_ADDRESS {
        return None;
    }
    let row = entry.unwind_info_for_address(section, bases, context, address).ok()?;
    Some(Rule {
        frame: row.cfa().clone(),
        registers: row.registers().map(|(register, rule)| (*register, rule.clone())).collect(),
        encoding: entry.cie().encoding(),
        is_signal: entry.is_signal_trampoline(),
        is_in_debug_frame: false,
    })
}

#[cfg(test)]
mod tests {
    use object::ReadCache;

    use super::*;

    fn own_tables() -> Tables {
        let cache = ReadCache::new(std::fs::File::open("/proc/self/exe").unwrap());
        Tables::read(&ElfFile64::parse(&cache).unwrap())
    }

    /// Returns the start of one of the functions.
    fn some_address(tables: &Tables) -> u64 {
        let index = index(&eh_frame(tables.eh_frame.as_ref().unwrap()), &tables.bases);
        index[index.len() / 2].0
    }

    #[test]
    fn the_rule_is_the_same_with_and_without_the_sorted_table() {
        let mut tables = own_tables();
        let (address, mut context) = (some_address(&tables), UnwindContext::new());
        let rule = tables.rule(address, &mut context).unwrap();
        tables.eh_frame_header = None;
        let again = tables.rule(address, &mut context).unwrap();
        assert_eq!((rule.frame, rule.registers), (again.frame, again.registers));
        // Not address 0, because a linker leaves entries there for functions that it has discarded.
        assert!(tables.rule(u64::MAX / 2, &mut context).is_none());
    }

    fn frame_rule(tables: &Tables, address: u64, context: &mut UnwindContext<usize>) -> Option<CfaRule<usize>> {
        tables.rule(address, context).map(|rule| rule.frame)
    }

    #[test]
    fn damaged_tables_never_cause_a_panic() {
        let mut tables = own_tables();
        let (address, mut context) = (some_address(&tables), UnwindContext::new());
        let entry = tables.offset_by_header(address).unwrap();
        let mut state = 1u64;
        let mut differences = 0;
        let right = frame_rule(&tables, address, &mut context);
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let noise = (state >> 24) as u8;
            let (data, index) = if state >> 63 == 0 {
                (&mut tables.eh_frame, entry + (state >> 40) as usize % 48)
            } else {
                (&mut tables.eh_frame_header, (state >> 40) as usize % 12)
            };
            let byte = &mut data.as_mut().unwrap().bytes[index];
            let before = std::mem::replace(byte, noise);
            differences += usize::from(frame_rule(&tables, address, &mut context) != right);
            let data = if state >> 63 == 0 { &mut tables.eh_frame } else { &mut tables.eh_frame_header };
            data.as_mut().unwrap().bytes[index] = before;
        }
        assert!(differences > 1000, "only {differences} changes had an effect");
        assert_eq!(frame_rule(&tables, address, &mut context), right);
    }
}
