//! Finds the addresses of the kernel's functions in /proc/kallsyms.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use crate::wire::WireScannerCode;

/// The function in which a thread waits for a scanner's answer (fs/notify/fanotify/fanotify.c).
const WAITS_FOR_SCANNER: &str = "fanotify_handle_event";

/// Returns the code in which a thread waits for a permission scanner. `None` if the kernel hides
/// addresses (without CAP_SYSLOG, or with kernel.kptr_restrict=2) or has no such function.
pub(super) fn scanner_code() -> Option<WireScannerCode> {
    find(BufReader::with_capacity(1 << 16, File::open("/proc/kallsyms").ok()?), WAITS_FOR_SCANNER).ok().flatten()
}

/// Returns a function's address and size. The function extends to the next symbol, since the kernel
/// lists its symbols by address.
fn find(mut symbols: impl BufRead, name: &str) -> io::Result<Option<WireScannerCode>> {
    let mut line = String::new();
    let mut start = None;
    while symbols.read_line(&mut line)? > 0 {
        let address = line.split(' ').next().and_then(|word| u64::from_str_radix(word, 16).ok());
        match (start, address) {
            (Some(start), Some(address)) if address > start => {
                let bytes = address - start;
                return Ok(Some(WireScannerCode { start, bytes }));
            }
            // A kernel that hides its addresses prints 0.
            (None, Some(address)) if address > 0 && is_named(&line, name) => start = Some(address),
            _ => {}
        }
        line.clear();
    }
    Ok(None)
}

/// Whether a line is that of the function `name`. A compiler may add a suffix: `name.isra.0` is a
/// changed copy of the function, but `name.cold` is only the part of it that is rarely executed.
fn is_named(line: &str, name: &str) -> bool {
    let symbol = line.split_ascii_whitespace().nth(2).unwrap_or_default();
    let suffix = symbol.strip_prefix(name);
    suffix.is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('.') && !suffix.contains("cold"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(symbols: &str) -> Option<(u64, u64)> {
        let code = find(symbols.as_bytes(), "wanted").unwrap();
        code.map(|code| (code.start, code.bytes))
    }

    #[test]
    fn a_function_extends_to_the_next_address() {
        let before = "ffff10 t wanted.cold\nffff20 t __pfx_wanted\n";
        assert_eq!(
            found(&format!("{before}ffff30 t wanted\nffff30 t alias\nffff90 t next\n")),
            Some((0x00ff_ff30, 0x60))
        );
        assert_eq!(found(&format!("{before}ffff30 t wanted.isra.0\nffff38 t unwanted\n")), Some((0x00ff_ff30, 8)));
    }

    #[test]
    fn hidden_addresses_and_absent_functions_are_unknown() {
        assert_eq!(found("0000000000000000 t wanted\n0000000000000000 t next\n"), None);
        assert_eq!(found("ffff30 t unwanted\nnonsense\n"), None);
        assert_eq!(found("ffff30 t wanted\n"), None, "its size is unknown");
    }
}
