//! The hashes of commands in ninja's logs.

use rapidhash::v1::rapidhash_v1;

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
pub(super) fn position_for_version(version: u32) -> Option<usize> {
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
    use super::*;

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
