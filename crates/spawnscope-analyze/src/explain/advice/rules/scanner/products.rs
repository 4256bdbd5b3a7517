//! The narrow exclusions that scanners document, by process name. All of them leave protection on
//! for the rest of the machine.

/// For each product: the names of its processes, and instructions from its manual.
const PRODUCTS: [(&[&str], &[&str]); 4] = [
    (
        &["fapolicyd"],
        &[
            "fapolicyd: trust the tools by checksum, so that their verdicts are cached:",
            "  fapolicyd-cli --file add /opt/toolchain/ && fapolicyd-cli --update",
            "fapolicyd: for build output, add a rule before the others, in a file in /etc/fapolicyd/rules.d/, and run `fagenrules --load`:",
            "  allow perm=any uid=BUILDER : dir=/srv/build/",
            "fapolicyd: raise obj_cache_size and subj_cache_size in fapolicyd.conf, so that fewer verdicts are computed again",
        ],
    ),
    (
        &["clamonacc", "clamd"],
        &[
            "ClamAV, in clamd.conf: exclude only the build tree and the compiler cache, and the build user if there is one:",
            "  OnAccessExcludePath /srv/build",
            "  OnAccessExcludeUname BUILDER",
            "ClamAV: use OnAccessIncludePath for the directories that matter, instead of OnAccessMountPath for whole file systems",
        ],
    ),
    (
        &["wdavdaemon", "mdatp"],
        &[
            "Microsoft Defender: list the processes that cause the scans: mdatp diagnostic real-time-protection-statistics --output json",
            "Microsoft Defender: exclude only the build tools or the build tree; managed machines get exclusions from their \
             administrator's profile:",
            "  mdatp exclusion process add --path /opt/toolchain/bin/cc",
            "  mdatp exclusion folder add --path /srv/build",
        ],
    ),
    (
        &["syspolicyd", "XprotectService"],
        &[
            "macOS checks each new file before its first launch, one after the other. For your terminal only: \
             sudo spctl developer-mode enable-terminal",
            "  then switch the terminal on under System Settings, Privacy & Security, Developer Tools, and restart it",
            "macOS: the price is that nothing that this terminal starts is checked any more; for some users it changed nothing",
            "macOS: without that, run each new file once before many processes need it, and do not build it again without need: \
             a copy or a rebuilt file is checked again",
        ],
    ),
];

/// Returns the lines of the fix for these daemons.
pub(super) fn fix(daemons: &[String]) -> Vec<&'static str> {
    let known = PRODUCTS.iter().filter(|(names, _)| is_any_of(daemons, names));
    let mut products: Vec<&str> = known.flat_map(|(_, lines)| lines.iter().copied()).collect();
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

fn is_any_of(daemons: &[String], names: &[&str]) -> bool {
    let mut daemons = daemons.iter();
    daemons.any(|daemon| names.iter().any(|name| daemon.starts_with(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_advice_disables_a_product() {
        let names = PRODUCTS.iter().flat_map(|(names, _)| names.iter());
        let all = fix(&names.map(|name| (*name).to_owned()).collect::<Vec<String>>()).join("\n");
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
