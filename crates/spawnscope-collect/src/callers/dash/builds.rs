//! The layouts of some builds of dash, which are known without running them: builds of
//! distributions that are common in containers.

use crate::wire::WireDash;

const BUILDS: &str = include_str!("builds.txt");

/// Returns the layout of a build, if it is listed.
pub(super) fn find(build: &[u8]) -> Option<WireDash> {
    let lines = BUILDS.lines().filter(|line| !line.starts_with('#'));
    let mut parsed = lines.filter_map(parse);
    parsed.find(|(id, _)| *id == build).map(|(_, layout)| layout)
}

fn parse(line: &str) -> Option<(Vec<u8>, WireDash)> {
    let mut words = line.split(' ');
    let digits = words.next()?.as_bytes().chunks(2);
    let id: Option<Vec<u8>> = digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    let mut fields = words.map_while(|word| u64::from_str_radix(word, 16).ok());
    let layout = WireDash {
        code_start: fields.next()?,
        line: fields.next()?,
        function_line: fields.next()?,
        dollar_zero: fields.next()?,
        command_name: fields.next()?,
        input: fields.next()?,
        job: fields.next()?,
        parameters: fields.next()?,
        state_block: 0,
        parameters_block: 0,
    };
    Some((id?, layout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_build_is_found_by_its_id() {
        let lines: Vec<&str> = BUILDS.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(!lines.is_empty());
        for line in lines {
            let (id, layout) = parse(line).unwrap();
            assert_eq!((id.len(), find(&id)), (20, Some(layout)), "{line}");
        }
        assert_eq!(find(&[0; 20]), None);
        assert_eq!(find(&[]), None);
    }
}
