//! aarch64: one instruction loads the page address of a variable (or of a neighbouring one) into a
//! register, others add the offset, and a load follows.

/// The values of registers, if they are known.
struct Registers([Option<u64>; 32]);

pub(super) fn variables_read(code: &[u8], address: u64) -> Vec<u64> {
    let mut registers = Registers([None; 32]);
    let instructions = code.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
    let at = (0..).map(|count: u64| address + 4 * count);
    at.zip(instructions).filter_map(|(at, instruction)| registers.step(at, instruction)).collect()
}

impl Registers {
    /// Follows one instruction. If it is a load of eight bytes from a known address, returns the
    /// address. Branches are not followed, because a register is set shortly before the
    /// instructions that use it.
    fn step(&mut self, at: u64, instruction: u32) -> Option<u64> {
        let (target, base) = (instruction & 31, instruction >> 5 & 31);
        let immediate = u64::from(instruction >> 10 & 0xfff);
        let mut read = None;
        let value = if instruction & 0x9f00_0000 == 0x9000_0000 {
            // adrp
            Some((at & !0xfff).wrapping_add_signed(distance(instruction) << 12))
        } else if instruction & 0x9f00_0000 == 0x1000_0000 {
            // adr
            Some(at.wrapping_add_signed(distance(instruction)))
        } else if instruction & 0xff80_0000 == 0x9100_0000 {
            // add with a constant, which may be shifted by 12
            let shift = 12 * (instruction >> 22 & 1);
            self.get(base).map(|value| value.wrapping_add(immediate << shift))
        } else if instruction & 0xffc0_0000 == 0xf940_0000 {
            // 64-bit ldr
            read = self.get(base).map(|value| value.wrapping_add(8 * immediate));
            None
        } else if instruction & 0x1c00_0000 == 0x1400_0000 {
            // Branches have no target register; bl and blr preserve registers from x19 on.
            if instruction & 0xfc00_0000 == 0x9400_0000 || instruction & 0xfffe_0000 == 0xd63e_0000 {
                self.0[..19].fill(None);
            }
            return None;
        } else {
            None
        };
        self.0[target as usize] = value;
        read
    }

    /// Returns the known value of a register. Register 31 is the stack pointer.
    fn get(&self, register: u32) -> Option<u64> {
        self.0.get(register as usize).copied().flatten().filter(|_| register != 31)
    }
}

/// Returns the signed distance in an adr or adrp instruction: 19 high bits and 2 low bits.
fn distance(instruction: u32) -> i64 {
    let high = (instruction.cast_signed() << 8) >> 13;
    i64::from(high << 2) | i64::from(instruction >> 29 & 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginning of `executing_line_number` in Debian's bash 5.2.15 for arm64.
    #[test]
    fn a_variable_that_is_addressed_relative_to_its_neighbour_is_found() {
        let code: [u32; 19] = [
            0xb0000820, 0xf945d000, 0xb9400000, 0x34000340, 0xf0000860, 0x912d4001, 0xb9405021, 0x350002c1, 0xb0000821,
            0xf942b021, 0xb9400021, 0x340000a1, 0xb0000821, 0xf943d821, 0xb9400021, 0x350001c1, 0x912d4000, 0xf9402c00,
            0xf9400c00,
        ];
        let bytes: Vec<u8> = code.iter().flat_map(|instruction| instruction.to_le_bytes()).collect();
        // The first three are slots of the global offset table with the addresses of exported
        // variables, the last is the variable.
        assert_eq!(variables_read(&bytes, 0x4a574), [0x14fba0, 0x14f560, 0x14f7b0, 0x159ba8]);
    }

    #[test]
    fn distances_have_a_sign() {
        // adr x0, . - 4; ldr x1, [x0, #8]
        let code: Vec<u8> = [0x10ff_ffe0u32, 0xf940_0401].iter().flat_map(|one| one.to_le_bytes()).collect();
        assert_eq!(variables_read(&code, 0x1000), [0x1004]);
    }
}
