//! Identifies recordings, and decides which format versions this program can read.

/// Marks an SQLite file as a recording: "SPNS", as in `schema.sql`.
pub(super) const APPLICATION_ID: i32 = 0x5350_4e53;

/// The version that this program writes, and the newest version that it reads: the number in
/// `schema.sql`, which also lists what each version added.
pub(super) const CURRENT: i32 = number_after("PRAGMA user_version = ", include_str!("schema.sql"));

/// The oldest version that this program reads; so far, it reads all versions. Tables and columns
/// that were added later (the declarations say in which version) are empty or NULL when an older
/// recording is read, which means unknown.
pub(super) const OLDEST_READABLE: i32 = 1;

/// Returns the number that follows the only occurrence of `name`. It is evaluated by the compiler,
/// which refuses a schema without the name.
const fn number_after(name: &str, text: &str) -> i32 {
    let (name, text) = (name.as_bytes(), text.as_bytes());
    let mut start = 0;
    let mut matched = 0;
    while matched < name.len() {
        matched = if text[start + matched] == name[matched] { matched + 1 } else { 0 };
        if matched == 0 {
            start += 1;
        }
    }
    let mut at = start + matched;
    let mut number = 0;
    while text[at].is_ascii_digit() {
        number = number * 10 + (text[at] - b'0') as i32;
        at += 1;
    }
    number
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
}
