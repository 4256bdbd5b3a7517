//! The narrow exclusions that scanners document (`scanners.tsv`), by process name.

use crate::explain::advice::finding::Finding;
use crate::explain::advice::tables::rows;

const PRODUCTS: &str = include_str!("../../scanners.tsv");

/// Adds how to exclude files from the scans of these daemons.
pub(super) fn with_fix(finding: Finding, daemons: &[String]) -> Finding {
    let is_product = |name: &str| daemons.iter().any(|daemon| daemon.starts_with(name));
    let known = rows(PRODUCTS).filter(|[names, _]| names.split(' ').any(is_product));
    let known: Vec<&str> = known.map(|[_, line]| line).collect();
    let case = if known.is_empty() { "" } else { "known" };
    finding.recipe("scanner", &[], &[]).fix_lines(known).recipe("scanner-after", &[case], &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_advice_disables_a_product() {
        let names = rows(PRODUCTS).flat_map(|[names, _]| names.split(' '));
        let all = with_fix(Finding::default(), &names.map(str::to_owned).collect::<Vec<String>>()).fix.join("\n");
        for word in ["disable", "stop ", "uninstall", "kill", "permissive", "OnAccessPrevention"] {
            assert!(!all.contains(word), "{word}");
        }
        assert!(all.starts_with("leave protection on"));
    }

    #[test]
    fn an_unknown_scanner_gets_general_advice() {
        let fix = with_fix(Finding::default(), &["test-scanner".to_owned()]).fix.join("\n");
        assert!(fix.contains("manual") && !fix.contains("ClamAV"), "{fix}");
    }
}
