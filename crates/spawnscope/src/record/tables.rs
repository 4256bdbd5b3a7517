//! The tables: their names and columns once, for the statements of the writer and of the reader
//! alike. What a column means is in `schema.sql`.

/// A table, its columns in the order in which rows are bound and taken apart.
pub(super) struct Table {
    /// Its name.
    pub(super) name: &'static str,
    /// Its columns.
    pub(super) columns: &'static [&'static str],
}

/// Of its columns, those that are read back.
pub(super) const RECORDING: Table = Table {
    name: "recording",
    columns: &[
        "version",
        "collector",
        "scope",
        "command",
        "cpus",
        "arch",
        "started_unix_ns",
        "root_launch",
        "last_ns",
        "wall_ns",
        "ended",
    ],
};

pub(super) const MISSING: Table = Table {
    name: "missing",
    columns: &["what", "effect"],
};

pub(super) const LOST: Table = Table {
    name: "lost",
    columns: &["kind", "events"],
};

pub(super) const TEXT: Table = Table {
    name: "text",
    columns: &["id", "bytes"],
};

pub(super) const LAUNCH: Table = Table {
    name: "launch",
    columns: &[
        "id",
        "parent",
        "parent_task",
        "pid",
        "origin",
        "mechanism",
        "create_ns",
        "created_ns",
        "first_run_ns",
        "exit_ns",
        "zombie_ns",
        "reaped_ns",
        "wait_status",
        "parent_rss_bytes",
        "parent_table_bytes",
        "exit_cpu_ns",
        "cpu_ns",
        "name_text",
    ],
};

pub(super) const EXEC: Table = Table {
    name: "exec",
    columns: &[
        "launch",
        "enter_ns",
        "return_ns",
        "load_ns",
        "has_loader",
        "enter_cpu_ns",
        "return_cpu_ns",
        "load_cpu_ns",
        "path_text",
        "interpreter_text",
        "argv_text",
        "argv_bytes",
        "cwd_text",
    ],
};

pub(super) const FAILED_EXEC: Table = Table {
    name: "failed_exec",
    columns: &["launch", "enter_ns", "return_ns", "path_text", "errno"],
};

pub(super) const THREAD: Table = Table {
    name: "thread",
    columns: &["task", "launch", "creator", "tid", "created_ns", "ended_ns", "cpu_ns"],
};

pub(super) const SLICE: Table = Table {
    name: "slice",
    columns: &[
        "task",
        "off_ns",
        "on_span",
        "off_span",
        "wake_span",
        "reason",
        "syscall",
        "argument",
        "waker",
        "waker_text",
        "object",
    ],
};

/// The same before `version::WITH_OBJECTS`.
pub(super) const SLICE_WITHOUT_OBJECT: Table = Table {
    name: "slice",
    columns: SLICE.columns.split_last().expect("a table has columns").1,
};

pub(super) const OBJECT: Table = Table {
    name: "object",
    columns: &["id", "kind", "device", "inode", "path_text"],
};

impl Table {
    /// Reads every row in the order of its key.
    pub(super) fn select(&self) -> String {
        format!("SELECT {} FROM {} ORDER BY rowid", self.columns.join(", "), self.name)
    }

    /// Adds a row.
    pub(super) fn insert(&self) -> String {
        format!("INSERT INTO {} {}", self.name, values(self.columns))
    }

    /// Adds a row, or writes it anew.
    pub(super) fn replace(&self) -> String {
        format!("INSERT OR REPLACE INTO {} {}", self.name, values(self.columns))
    }

    /// Adds a row under a given rowid, or writes it anew; the rowid is bound first.
    pub(super) fn replace_at_rowid(&self) -> String {
        let columns: Vec<&str> = ["rowid"].iter().chain(self.columns).copied().collect();
        format!("INSERT OR REPLACE INTO {} {}", self.name, values(&columns))
    }
}

/// `(a, b) VALUES (?, ?)`
fn values(columns: &[&str]) -> String {
    format!(
        "({}) VALUES ({})",
        columns.join(", "),
        vec!["?"; columns.len()].join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_those_of_the_schema() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("schema.sql")).unwrap();
        for table in [MISSING, LOST, TEXT, LAUNCH, EXEC, FAILED_EXEC, THREAD, SLICE, OBJECT] {
            let statement = connection.prepare(&format!("SELECT * FROM {}", table.name)).unwrap();
            assert_eq!(
                statement.column_names().collect::<Vec<_>>(),
                table.columns,
                "{}",
                table.name
            );
        }
    }
}
