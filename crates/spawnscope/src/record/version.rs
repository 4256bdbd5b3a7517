//! Which files are recordings, and which versions of the format this program can read.

/// Marks an SQLite file as a recording: "SPNS", as in `schema.sql`.
pub(super) const APPLICATION_ID: i32 = 0x5350_4e53;

/// The version this program writes, as in `schema.sql`, and the newest that it reads.
pub(super) const CURRENT: i32 = 8;

/// The oldest version this program reads: all of them, so far. Tables and columns that came later (`tables` says when)
/// are empty and NULL there: unknown.
const OLDEST_READABLE: i32 = 1;

/// What the two numbers in an SQLite header say about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// A recording that can be read.
    Readable,
    /// A recording in a version of the format that came later.
    Newer(i32),
    /// Something else.
    Foreign,
}

/// Judges a file by its `application_id` and `user_version`.
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
    fn the_schema_declares_the_numbers_that_are_checked() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("schema.sql")).unwrap();
        let pragma = |name| {
            connection
                .pragma_query_value(None, name, |row| row.get::<_, i32>(0))
                .unwrap()
        };
        assert_eq!(pragma("application_id"), APPLICATION_ID);
        assert_eq!(pragma("user_version"), CURRENT);
    }

    #[test]
    fn only_our_own_known_versions_are_readable() {
        assert_eq!(identify(APPLICATION_ID, CURRENT), Identity::Readable);
        assert_eq!(identify(APPLICATION_ID, 1), Identity::Readable);
        assert_eq!(identify(APPLICATION_ID, CURRENT + 1), Identity::Newer(CURRENT + 1));
        assert_eq!(identify(APPLICATION_ID, 0), Identity::Foreign);
        assert_eq!(identify(0, CURRENT), Identity::Foreign);
    }
}
