//! Tests with files that were made to run code, to exhaust memory, to loop forever, or to report
//! wrong data. Each is based on an attack that once succeeded.

use super::*;

/// Returns the error of reading a recording that `sql` has changed.
fn read_error(sql: &str) -> String {
    match read_after(sql) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("read after {sql}"),
    }
}

#[test]
fn a_view_that_replaces_a_table_is_not_executed() {
    let endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS rowid, 'x' AS what, 'y' AS effect FROM n";
    let found = read_error(&format!("DROP TABLE missing; CREATE VIEW missing AS {endless}"));
    assert!(found.contains("its view missing does not match format"), "{found}");
    let found = read_error("ALTER TABLE text ADD COLUMN made AS (zeroblob(1 << 29))");
    assert!(found.contains("its table text"), "{found}");
}

#[test]
fn a_huge_value_is_not_read() {
    for sql in [
        "UPDATE text SET bytes = zeroblob(900000000) WHERE id = 1",
        "UPDATE recording SET command = zeroblob(20000000)",
        "INSERT INTO missing VALUES (CAST(zeroblob(17000000) AS TEXT), '')",
    ] {
        let found = read_error(sql);
        assert!(found.contains("damaged") && found.contains("too big"), "{found}");
    }
}

#[test]
fn numbers_that_determine_loops_or_allocations_are_limited() {
    for (sql, expected) in [
        ("UPDATE recording SET cpus = 2147483647", "column cpus of table recording"),
        ("UPDATE recording SET last_ns = 1 << 57", "column last_ns of table recording"),
        ("UPDATE recording SET wall_ns = -5", "column wall_ns of table recording"),
        ("UPDATE launch SET exit_ns = 9223372036854775807 WHERE id = 2", "column exit_ns of table launch"),
        ("UPDATE slice SET on_span = 1 << 60 WHERE rowid = 1", "column on_span of table slice"),
        ("UPDATE exec SET argv_bytes = -1", "column argv_bytes of table exec"),
        (
            "INSERT INTO label VALUES ('a b', 'x')",
            "column value of table label holds an invalid label: a key begins with a letter",
        ),
        ("INSERT INTO label VALUES ('long', CAST(zeroblob(2000) AS TEXT))", "the value is longer than 1024 bytes"),
        (
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 64) \
             INSERT INTO label SELECT 'k' || i, 'x' FROM n",
            "more than 64 labels",
        ),
        (
            "UPDATE recording SET allowed_cpus = 0.0",
            "column allowed_cpus of table recording holds 0, which is not between",
        ),
        ("UPDATE recording SET allowed_cpus = -2.0", "column allowed_cpus of table recording"),
        ("UPDATE recording SET allowed_cpus = 1e9", "column allowed_cpus of table recording"),
        ("UPDATE launch SET pid = -7 WHERE id = 2", "column pid of table launch holds -7"),
        ("INSERT INTO thread VALUES (50, 2, NULL, -5, 1, 2, 1)", "column tid of table thread holds -5"),
        ("INSERT INTO peer SELECT 1, 2, -3, min(id) FROM text", "column pid of table peer holds -3"),
        ("INSERT OR REPLACE INTO calibration VALUES ('fork_exit', -1e15, 1e6, 1e7)", "column ns of table calibration"),
        (
            "INSERT OR REPLACE INTO calibration VALUES ('fork_exit', 1e6, 1e6, 1e15)",
            "column high_ns of table calibration",
        ),
        ("UPDATE launch SET parent_rss_bytes = 1 << 60 WHERE id = 2", "column parent_rss_bytes of table launch"),
        ("UPDATE launch SET setup_closes = 1 << 40", "column setup_closes of table launch"),
    ] {
        let found = read_error(sql);
        assert!(found.contains(expected), "{sql}: {found}");
    }
    let found = read_error(
        "UPDATE launch SET cpu_ns = 1 << 55; UPDATE recording SET last_ns = 1 << 55; \
        WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
        INSERT INTO launch (id, origin, created_ns) SELECT i, 0, 0 FROM n",
    );
    assert!(found.contains("more than 292 years"), "{found}");
}

const LATE: &str = "times from after the recording, or longer than it";

/// Returns the contradictions in a recording that `sql` has changed: each kind with its number of
/// rows and its first id.
fn contradictions_after(sql: &str) -> Vec<(&'static str, u64, u64)> {
    let found = read_after(sql).unwrap().info.contradictions.0;
    found.iter().map(|kind| (kind.what, kind.rows, kind.first_id)).collect()
}

#[test]
fn rows_that_contradict_each_other_are_counted() {
    assert_eq!(contradictions_after(""), [], "a recorder writes no contradictions");
    let minute = "60000000000";
    let quiet = format!("UPDATE recording SET wall_ns = {minute}");
    assert_eq!(contradictions_after(&quiet), [], "nothing happened at the end of the recording");
    for (sql, what, first) in [
        (
            format!("UPDATE recording SET last_ns = {minute}; UPDATE launch SET created_ns = {minute} WHERE id = 3"),
            "launches that end before they begin",
            3,
        ),
        (format!("UPDATE launch SET reaped_ns = {minute} WHERE id = 3"), LATE, 3),
        ("UPDATE launch SET setup_close_span = 2000000000 WHERE id = 3".to_owned(), LATE, 3),
        (
            "UPDATE launch SET cpu_ns = NULL, exit_cpu_ns = 1 << 53 WHERE id = 2".to_owned(),
            "CPU times that exceed the time of all CPUs",
            2,
        ),
        (
            "UPDATE exec SET load_cpu_ns = 1 << 53 WHERE launch = 2".to_owned(),
            "CPU times that exceed the time of all CPUs",
            2,
        ),
        (
            "INSERT INTO lost VALUES ('a', 9223372036854775807), ('b', 9223372036854775807)".to_owned(),
            "counts above one per nanosecond on each CPU",
            0,
        ),
        (
            format!(
                "UPDATE recording SET last_ns = 2 * {minute}; UPDATE launch SET created_ns = {minute} WHERE id = 1; UPDATE launch SET parent = 1 WHERE id = 4; DELETE FROM launch WHERE id IN (2, 3); DELETE FROM exec; DELETE FROM failed_exec; DELETE FROM slice"
            ),
            "launches that came before their parent",
            4,
        ),
        ("UPDATE launch SET parent = 4 WHERE id = 2".to_owned(), "launches that came before their parent", 2),
        ("UPDATE launch SET parent = 2 WHERE id = 2".to_owned(), "launches that came before their parent", 2),
        ("UPDATE launch SET parent = 77 WHERE id = 2".to_owned(), "launches by a process that is not recorded", 2),
        (
            format!("UPDATE launch SET cpu_ns = {minute} WHERE id = 4"),
            "launches whose CPU or setup time exceeds their life",
            4,
        ),
        (
            format!("UPDATE launch SET setup_close_span = {minute} WHERE id = 4"),
            "launches whose CPU or setup time exceeds their life",
            4,
        ),
        (
            format!("UPDATE exec SET load_ns = {minute} WHERE launch = 2"),
            "execs that end before they begin, or outside of their process's life",
            2,
        ),
        ("UPDATE exec SET launch = 77 WHERE launch = 2".to_owned(), "execs by a process that is not recorded", 77),
        (
            format!("UPDATE failed_exec SET enter_ns = {minute} WHERE launch = 3"),
            "failed execs that end before they begin, or outside of their process's life",
            3,
        ),
        (
            "INSERT INTO thread VALUES (50, 77, NULL, 5, 1, 2, 1)".to_owned(),
            "threads of a process that is not recorded",
            50,
        ),
        (
            format!("INSERT INTO thread VALUES (50, 2, NULL, 5, {minute}, 2, 1)"),
            "threads that end before they begin, or outside of their process's life",
            50,
        ),
        ("UPDATE slice SET task = 77 WHERE rowid = 2".to_owned(), "slices of a thread that is not recorded", 77),
        (format!("UPDATE slice SET off_span = {minute} WHERE rowid = 2"), "slices that end after the recording", 2),
        (
            format!(
                "UPDATE recording SET last_ns = {minute}; UPDATE slice SET off_span = 1, wake_span = 5000000 WHERE rowid = 2"
            ),
            "slices of a thread that was woken after it ran",
            2,
        ),
        ("INSERT INTO sample VALUES (77, 1, 1, 0, 1)".to_owned(), "samples of a thread that is not recorded", 77),
        (format!("INSERT INTO sample VALUES (1, {minute}, 1, 0, 1)"), LATE, 1),
        ("UPDATE recording SET root_launch = 77".to_owned(), "commands without a launch in the recording", 77),
    ] {
        let found = contradictions_after(&sql);
        assert!(
            found.iter().any(|(kind, rows, number)| (*kind, *rows > 0, *number) == (what, true, first)),
            "{sql}: {found:?}"
        );
    }
}

const PAGE: usize = 4_096;
/// Length of a text whose first 489 bytes SQLite stores in the row itself, while the other bytes
/// fill overflow pages.
const LONG: usize = 489 + 48 * (PAGE - 4);

#[test]
fn texts_that_share_their_pages_do_not_exhaust_memory() {
    let (_directory, path) = recording(1);
    for letter in "ABCDE".chars() {
        change(&path, &format!("INSERT INTO text (bytes) VALUES (CAST(printf('%.*c', {LONG}, '{letter}') AS BLOB))"));
    }
    let mut bytes = fs::read(&path).unwrap();
    // The other texts get the overflow pages of the first text, and the file is truncated after
    // these pages.
    let at = page_number_offset(&bytes, b'A');
    let first: [u8; 4] = bytes[at..at + 4].try_into().unwrap();
    for letter in *b"BCDE" {
        let at = page_number_offset(&bytes, letter);
        bytes[at..at + 4].copy_from_slice(&first);
    }
    let pages = u32::from_be_bytes(first) + 47;
    bytes.truncate(pages as usize * PAGE);
    bytes[28..32].copy_from_slice(&pages.to_be_bytes());
    fs::write(&path, bytes).unwrap();
    let error = read_all(&path).unwrap_err().to_string();
    assert!(error.contains("column bytes of table text holds more bytes than the file has"), "{error}");
}

/// Returns the offset of the number of the first overflow page of the text that consists of
/// `letter`. The number follows the bytes that are in the row itself.
fn page_number_offset(bytes: &[u8], letter: u8) -> usize {
    let mut starts = (0..bytes.len() - 489).filter(|at| at % PAGE != 4 && bytes[at - 1.min(*at)] != letter);
    starts.find(|at| bytes[*at..at + 489].iter().all(|byte| *byte == letter)).unwrap() + 489
}

#[test]
fn a_cycle_of_pages_does_not_loop_forever() {
    let (_directory, path) = recording(2_000);
    change(&path, "SELECT 1");
    let connection = Connection::open(&path).unwrap();
    let root: u32 =
        connection.query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'slice'", [], |row| row.get(0)).unwrap();
    drop(connection);
    let mut bytes = fs::read(&path).unwrap();
    let page = &mut bytes[(root as usize - 1) * PAGE..];
    assert_eq!(page[0], 5, "an inner page of a table");
    let cells = u16::from_be_bytes([page[3], page[4]]) as usize;
    let child_offsets: Vec<usize> =
        page[12..].as_chunks().0[..cells].iter().map(|offset| u16::from_be_bytes(*offset) as usize).collect();
    // Every child pointer is set to the first child.
    let first: [u8; 4] = page[child_offsets[0]..][..4].try_into().unwrap();
    for at in child_offsets {
        page[at..at + 4].copy_from_slice(&first);
    }
    fs::write(&path, bytes).unwrap();
    let error = read_all(&path).unwrap_err().to_string();
    assert!(error.contains("rows of table slice are not in order"), "{error}");
}
