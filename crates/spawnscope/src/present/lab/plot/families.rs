//! Decides which series share a picture: all, unless there are more than a reader can tell apart.
//! Then each family of mechanisms has its own picture. Bands of similar series were rejected: which
//! series are similar depends on the run, so two reports would have different pictures.

/// The maximum number of series in a picture.
pub(super) const MAX_SERIES: usize = 8;
/// A family with fewer series shares a picture with the next.
const MIN_SERIES: usize = 3;
/// The families, with the beginnings of the names in each.
const FAMILIES: [(&str, &[&str]); 4] = [
    ("fork", &["fork", "bash"]),
    ("vfork and clone", &["vfork", "clone"]),
    ("C library", &["posix_spawn", "system", "popen"]),
    ("vspawn", &["vspawn"]),
];
const OTHERS: &str = "others";

/// A picture: its title, which is empty if it is the only one, and the positions of its series.
#[derive(Debug, PartialEq)]
pub(super) struct Picture {
    pub(super) title: String,
    pub(super) series: Vec<usize>,
}

/// Assigns series to pictures by their names.
pub(super) fn pictures(names: &[&str]) -> Vec<Picture> {
    if names.len() <= MAX_SERIES {
        let series = (0..names.len()).collect();
        let title = String::new();
        return vec![Picture { title, series }];
    }
    let titles = FAMILIES.iter().map(|(title, _)| *title).chain([OTHERS]);
    let mut pictures: Vec<Picture> = Vec::new();
    for (number, title) in titles.enumerate() {
        let members = (0..names.len()).filter(|at| family(names[*at]) == number);
        let members: Vec<usize> = members.collect();
        match pictures.last_mut() {
            Some(last) if last.series.len() < MIN_SERIES && last.series.len() + members.len() <= MAX_SERIES => {
                last.join(title, &members);
            }
            _ => pictures.extend(
                members.chunks(MAX_SERIES).map(|part| Picture { title: title.to_owned(), series: part.to_vec() }),
            ),
        }
    }
    pictures
}

/// Returns the index of the family of a name. Names without a family belong to the last one, `others`.
fn family(name: &str) -> usize {
    FAMILIES
        .iter()
        .position(|(_, beginnings)| beginnings.iter().any(|beginning| name.starts_with(beginning)))
        .unwrap_or(FAMILIES.len())
}

impl Picture {
    fn join(&mut self, title: &str, members: &[usize]) {
        if !members.is_empty() {
            self.title = format!("{}, {title}", self.title);
            self.series.extend(members);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(names: &[&str]) -> Vec<(String, usize)> {
        let pictures = pictures(names).into_iter();
        pictures.map(|one| (one.title, one.series.len())).collect()
    }

    #[test]
    fn few_series_share_a_picture() {
        assert_eq!(sizes(&["fork", "vspawn"]), [(String::new(), 2)]);
    }

    #[test]
    fn many_series_are_split_by_family_and_small_families_are_joined() {
        let open_fds = [
            "fork + exec",
            "vfork + exec",
            "posix_spawn",
            "vfork, close loop",
            "vfork, /proc/self/fd",
            "vfork, close_range",
            "clone, unshare",
            "vspawn",
            "vspawn, close_others",
        ];
        let expected = [("fork, vfork and clone", 6), ("C library, vspawn", 3)];
        assert_eq!(sizes(&open_fds), expected.map(|(title, size)| (title.to_owned(), size)));
    }

    #[test]
    fn no_picture_has_more_than_a_reader_can_tell_apart_and_no_series_is_lost() {
        let names: Vec<String> = (0..20).map(|number| format!("program {number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).chain(["vspawn", "fork"]).collect();
        let pictures = pictures(&names);
        assert!(pictures.iter().all(|one| one.series.len() <= MAX_SERIES), "{pictures:?}");
        let mut all: Vec<usize> = pictures.into_iter().flat_map(|one| one.series).collect();
        all.sort_unstable();
        assert_eq!(all, (0..names.len()).collect::<Vec<_>>());
    }
}
