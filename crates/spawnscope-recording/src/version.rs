//! Identifies recordings, and decides which format versions this program can read.

/// Marks an SQLite file as a recording: "SPNS", as in `schema.sql`.
pub(super) const APPLICATION_ID: i32 = 0x5350_4e53;

/// The version that this program writes, as in `schema.sql`, and the newest version that it reads.
/// The versions added:
///
/// - 2: `calibration`, and columns of `launch` and `exec`
/// - 3: `object`, and the column that refers to it. Before, waits for scanners count as waits for a
///   disk.
/// - 4: what a parent does around launches
/// - 5: call chains, and the number of system calls in each slice
/// - 6: slices that are not over when the recording ends
/// - 7: whether a waker is certain
/// - 8: checksums. Before, the log was a rollback journal.
/// - 9: the CPUs that the command may use, and when programs begin their work
/// - 10: labels, variables that name packages and tests, page faults of a parent after its last
///   launch, and more constants
/// - 11: addresses of the peers of internet sockets, and the local processes that listen there
/// - 12: edges of ninja, and which of several files a thread waited for
pub(super) const CURRENT: i32 = 12;

/// The oldest version that this program reads; so far, it reads all versions. Tables and columns that were added later (the declarations say in
/// which version) are empty or NULL when an older recording is read, which means unknown.
const OLDEST_READABLE: i32 = 1;

/// What the two numbers in an SQLite header say about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// A recording that this program can read.
    Readable,
    /// A recording in a newer format version.
    Newer(i32),
    /// Not a recording.
    Foreign,
}

/// Identifies a file by its `application_id` and `user_version`.
pub(super) fn identify(application_id: i32, user_version: i32) -> Identity {
    match user_version {
        _ if application_id != APPLICATION_ID => Identity::Foreign,
        OLDEST_READABLE..=CURRENT => Identity::Readable,
        newer if newer > CURRENT => Identity::Newer(newer),
        _ => Identity::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_contains_the_numbers_that_are_checked() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("schema.sql")).unwrap();
        for (name, expected) in [("application_id", APPLICATION_ID), ("user_version", CURRENT)] {
            let found: i32 = connection.pragma_query_value(None, name, |row| row.get(0)).unwrap();
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn only_recordings_of_known_versions_are_readable() {
        assert_eq!(identify(APPLICATION_ID, CURRENT), Identity::Readable);
        assert_eq!(identify(APPLICATION_ID, 1), Identity::Readable);
        assert_eq!(identify(APPLICATION_ID, CURRENT + 1), Identity::Newer(CURRENT + 1));
        assert_eq!(identify(APPLICATION_ID, 0), Identity::Foreign);
        assert_eq!(identify(0, CURRENT), Identity::Foreign);
    }
}
