//! Compares the schema of a file with that of a recording of the same version, before any row is
//! read. A view, a trigger, a generated column or an expression in an index could execute an
//! attacker's code in our connection.

use rusqlite::Connection;

use super::tables::TABLES;

/// The schema of the current version. The declarations in `tables` say which version added each
/// table and column.
const CURRENT: &str = include_str!("schema.sql");

/// Describes how a file's schema differs from that of a recording of its version; `None` if they
/// are equal.
pub(super) fn difference(connection: &Connection, version: i32) -> rusqlite::Result<Option<String>> {
    let mut expected = expected(version);
    let mut statement = connection.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema")?;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        let sql: Option<String> = row.get(3)?;
        let found = Definition {
            kind: row.get(0)?,
            name: row.get(1)?,
            table: row.get(2)?,
            parts: sql.map(|sql| split_definition(&sql)),
        };
        let Some(index) = expected.iter().position(|definition| *definition == found) else {
            let (kind, name) = (found.kind.escape_debug(), found.name.escape_debug());
            return Ok(Some(format!("its {kind} {name} does not match format {version}")));
        };
        expected.swap_remove(index);
    }
    Ok(expected.first().map(|definition| format!("it has no {} {}", definition.kind, definition.name)))
}

/// A row of `sqlite_schema`.
#[derive(Debug, PartialEq, Eq)]
struct Definition {
    kind: String,
    name: String,
    table: String,
    /// The parts of the definition. `None` for an index that SQLite has created automatically,
    /// because it has no statement.
    parts: Option<Vec<String>>,
}

fn expected(version: i32) -> Vec<Definition> {
    let mut all = Vec::new();
    for statement in without_comments(CURRENT).split(';') {
        let table = TABLES.iter().find(|table| created_table(statement) == Some(table.name));
        let Some(table) = table.filter(|table| table.since() <= version) else { continue };
        let mut parts = split_definition(statement);
        // Removes the columns of later versions. The first part, `CREATE TABLE x`, stays, because
        // no column is called CREATE.
        parts.retain(|part| {
            let name = part.split(' ').next();
            let mut later = table.columns.iter().filter(|column| column.since > version);
            later.all(|column| name != Some(column.name))
        });
        let has_index = parts.iter().any(|part| part.ends_with(" TEXT PRIMARY KEY"));
        let index = has_index.then(|| ("index", format!("sqlite_autoindex_{}_1", table.name), None));
        let definitions = [("table", table.name.to_owned(), Some(parts))].into_iter().chain(index);
        all.extend(definitions.map(|(kind, name, parts)| Definition {
            kind: kind.to_owned(),
            name,
            table: table.name.to_owned(),
            parts,
        }));
    }
    all
}

fn created_table(statement: &str) -> Option<&str> {
    statement.split('(').next()?.trim().strip_prefix("CREATE TABLE ")
}

/// Splits a CREATE TABLE statement into the part before the list of columns, each column, and the
/// part after the list if there is one. Removes comments, and reduces white space to single spaces.
fn split_definition(statement: &str) -> Vec<String> {
    let statement = without_comments(statement);
    let Some((head, rest)) = statement.split_once('(') else { return vec![normalize(&statement)] };
    let Some((list, tail)) = rest.rsplit_once(')') else { return vec![normalize(&statement)] };
    let mut parts = vec![normalize(head)];
    let (mut depth, mut from) = (0usize, 0);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(normalize(&list[from..at]));
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(normalize(&list[from..]));
    parts.extend(Some(normalize(tail)).filter(|tail| !tail.is_empty()));
    parts
}

fn normalize(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Removes comments, which extend from `--` to the end of the line. Strings that contain `--` need
/// no special handling: our schema has none, and in another schema the opening quote of such a
/// string remains, so that the two schemas differ.
fn without_comments(sql: &str) -> String {
    let lines = sql.lines().map(|line| line.split_once("--").map_or(line, |(code, _)| code));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference_after(sql: &str, version: i32) -> Option<String> {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(sql).unwrap();
        difference(&connection, version).unwrap()
    }

    #[test]
    fn unexpected_schema_objects_are_named() {
        for (sql, expected) in [
            ("CREATE VIEW v AS SELECT 1", "view v"),
            ("DROP TABLE missing; CREATE VIEW missing AS SELECT 1 AS what, 2 AS effect", "view missing"),
            ("CREATE TRIGGER t AFTER INSERT ON lost BEGIN SELECT 1; END", "trigger t"),
            ("CREATE TABLE extra (x)", "table extra"),
            ("CREATE INDEX i ON launch (pid + 1)", "index i"),
            ("ALTER TABLE text ADD COLUMN more INTEGER", "table text"),
            ("ALTER TABLE exec DROP COLUMN load_cache", "table exec"),
            ("ALTER TABLE text ADD COLUMN made AS (length(bytes))", "table text"),
            ("ALTER TABLE text RENAME COLUMN bytes TO byte", "table text"),
            (
                "DROP TABLE text; CREATE TABLE text (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID",
                "table text",
            ),
            ("DROP TABLE text; CREATE VIRTUAL TABLE text USING fts5(bytes)", "table text"),
            ("DROP TABLE text", "no table text"),
            ("DROP TABLE lost; CREATE TABLE lost (kind TEXT, events INTEGER NOT NULL)", "table lost"),
        ] {
            let found = difference_after(&format!("{CURRENT};{sql}"), super::super::version::CURRENT).unwrap();
            assert!(found.contains(expected), "{sql}: {found}");
        }
    }
}
