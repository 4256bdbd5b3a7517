//! The narrow exclusions that scanners document, by the name of their process. All of them leave protection on for the rest
//! of the machine.

/// Process names, and what their manuals offer.
const PRODUCTS: [(&[&str], &[&str]); 3] = [
    (
        &["fapolicyd"],
        &[
            "fapolicyd: trust the tools by their checksums, so that their verdict is remembered:",
            "  fapolicyd-cli --file add /opt/toolchain/ && fapolicyd-cli --update",
            "fapolicyd: for the output of builds a rule before the others, in a file of /etc/fapolicyd/rules.d/, then `fagenrules --load`:",
            "  allow perm=any uid=BUILDER : dir=/srv/build/",
            "fapolicyd: obj_cache_size and subj_cache_size in fapolicyd.conf, so that a verdict is not asked for twice",
        ],
    ),
    (
        &["clamonacc", "clamd"],
        &[
            "ClamAV, in clamd.conf: the build tree and the compiler's cache only, and the user who builds if there is one:",
            "  OnAccessExcludePath /srv/build",
            "  OnAccessExcludeUname BUILDER",
            "ClamAV: OnAccessIncludePath for the directories that matter, rather than OnAccessMountPath for whole file systems",
        ],
    ),
    (
        &["wdavdaemon", "mdatp"],
        &[
            "Microsoft Defender: which processes cause the scans: mdatp diagnostic real-time-protection-statistics --output json",
            "Microsoft Defender: the build's own tools or tree only; managed machines take it from their administrator's profile:",
            "  mdatp exclusion process add --path /opt/toolchain/bin/cc",
            "  mdatp exclusion folder add --path /srv/build",
        ],
    ),
];

/// What its owner can decide, for the daemons that were waited for.
pub(super) fn fix(daemons: &[String]) -> Vec<String> {
    let is_there = |names: &&[&str]| {
        let is_named = |name: &&str| daemons.iter().any(|daemon| daemon.starts_with(*name));
        names.iter().any(is_named)
    };
    let known = PRODUCTS.iter().filter(|(names, _)| is_there(names));
    let mut fix = vec![
        "leave protection on; launch less (see other advice): each exec and each library that is opened is asked for"
            .to_owned(),
        "whether anything is excluded is for the owner of this machine's security to decide: show them these figures"
            .to_owned(),
    ];
    let lines: Vec<String> = known
        .flat_map(|(_, lines)| lines.iter().map(|line| (*line).to_owned()))
        .collect();
    if lines.is_empty() {
        fix.push(
            "the product's manual says how to exclude a path or a process: a build tree and a compiler's cache, for the user who \
             builds, are narrow; /usr, /tmp and whole home directories are not"
                .to_owned(),
        );
    }
    fix.extend(lines);
    fix.push("scan what is excluded at another time, such as each night".to_owned());
    fix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_product_is_to_be_switched_off() {
        let every = PRODUCTS.iter().flat_map(|(names, _)| names.iter());
        let all = fix(&every.map(|name| (*name).to_owned()).collect::<Vec<String>>()).join("\n");
        for word in [
            "disable",
            "stop ",
            "uninstall",
            "kill",
            "permissive",
            "OnAccessPrevention",
        ] {
            assert!(!all.contains(word), "{word}");
        }
        assert!(all.starts_with("leave protection on"));
    }

    #[test]
    fn an_unknown_scanner_gets_no_other_products_advice() {
        let fix = fix(&["test-scanner".to_owned()]).join("\n");
        assert!(fix.contains("manual") && !fix.contains("ClamAV"), "{fix}");
    }
}
