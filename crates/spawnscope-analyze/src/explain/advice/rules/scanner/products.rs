//! The narrow exclusions that scanners document (`scanners.tsv`), by process name.

use crate::explain::advice::tables::rows;

const PRODUCTS: &str = include_str!("../../scanners.tsv");

/// Returns the lines of the fix for these daemons.
pub(super) fn fix(daemons: &[String]) -> Vec<&'static str> {
    let is_product = |name: &str| daemons.iter().any(|daemon| daemon.starts_with(name));
    let known = rows(PRODUCTS).filter(|[names, _]| names.split(' ').any(is_product));
    let mut products: Vec<&str> = known.map(|[_, line]| line).collect();
    if products.is_empty() {
        products.push(
            "the product's manual says how to exclude a path or a process. Keep exclusions narrow: a build tree or a compiler \
             cache, for the build user only; not /usr, /tmp or whole home directories",
        );
    }
    let before = [
        "leave protection on, and launch fewer programs: the scanner must permit each exec and each opened library",
        "whoever is responsible for the security of this machine decides on exclusions: show them these figures",
    ];
    let after = ["scan the excluded files at another time, such as each night"];
    [&before[..], &products, &after].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_advice_disables_a_product() {
        let names = rows(PRODUCTS).flat_map(|[names, _]| names.split(' '));
        let all = fix(&names.map(str::to_owned).collect::<Vec<String>>()).join("\n");
        for word in ["disable", "stop ", "uninstall", "kill", "permissive", "OnAccessPrevention"] {
            assert!(!all.contains(word), "{word}");
        }
        assert!(all.starts_with("leave protection on"));
    }

    #[test]
    fn an_unknown_scanner_gets_general_advice() {
        let fix = fix(&["test-scanner".to_owned()]).join("\n");
        assert!(fix.contains("manual") && !fix.contains("ClamAV"), "{fix}");
    }
}
