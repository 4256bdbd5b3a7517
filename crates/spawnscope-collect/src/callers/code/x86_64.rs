//! x86-64: instructions refer to variables by their distance from the next instruction. Instruction
//! boundaries are unknown, but if bytes within an instruction look like such an instruction, the
//! address that they refer to is hardly ever that of a variable.

pub(super) fn variables_read(code: &[u8], address: u64) -> Vec<u64> {
    let read = code.windows(7).enumerate().filter_map(|(at, bytes)| {
        let [prefix, operation, operands, displacement @ ..] = bytes else { return None };
        // mov of 64 bits into any register; cmp with an immediate byte, which follows the
        // displacement.
        let immediate = match (prefix, operation, operands) {
            (0x48 | 0x4c, 0x8b, operands) if operands & 0xc7 == 0x05 => 0,
            (0x48, 0x83, 0x3d) => 1,
            _ => return None,
        };
        let next = address + at as u64 + 7 + immediate;
        let displacement = i32::from_le_bytes(*displacement.first_chunk()?);
        next.checked_add_signed(i64::from(displacement))
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_64_bit_moves_and_comparisons_are_recognized() {
        let code = [
            0x48, 0x8b, 0x05, 0x10, 0, 0, 0, // mov rax, [rip + 16]
            0x8b, 0x05, 0x10, 0, 0, 0, // mov eax, [rip + 16]
            0x48, 0x83, 0x3d, 0xf0, 0xff, 0xff, 0xff, 0, // cmp qword [rip - 16], 0
        ];
        assert_eq!(variables_read(&code, 0x1000), [0x1017, 0x1005]);
    }
}
