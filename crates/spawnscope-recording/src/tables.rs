//! The names of all tables and columns, shared by the statements of the writer and the reader. `schema.sql` documents the columns.

/// A table, with its columns in the order in which rows are bound and decoded.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [&'static str],
    /// The first format version that has the table.
    pub(super) since: i32,
    /// Columns added later, each with the first version that has it.
    pub(super) later: &'static [(&'static str, i32)],
}

pub(super) const RECORDING: Table = Table {
    name: "recording",
    columns: &[
        "id",
        "version",
        "collector",
        "scope",
        "command",
        "cwd",
        "kernel",
        "arch",
        "hostname",
        "cpus",
        "started_unix_ns",
        "origin_ns",
        "root_launch",
        "last_ns",
        "wall_ns",
        "ended",
    ],
    since: 1,
    later: &[],
};

pub(super) const MISSING: Table = Table {
    name: "missing",
    columns: &["what", "effect"],
    since: 1,
    later: &[],
};

pub(super) const CALIBRATION: Table = Table {
    name: "calibration",
    columns: &["what", "ns", "low_ns", "high_ns"],
    since: 2,
    later: &[],
};

pub(super) const LOST: Table = Table {
    name: "lost",
    columns: &["kind", "events"],
    since: 1,
    later: &[],
};

pub(super) const TEXT: Table = Table {
    name: "text",
    columns: &["id", "bytes"],
    since: 1,
    later: &[],
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
        "setup_closes",
        "setup_close_span",
        "prepare_ns",
        "parent_tidied_ns",
        "parent_faults",
        "script_stack",
        "native_stack",
    ],
    since: 1,
    later: &[
        ("setup_closes", 2),
        ("setup_close_span", 2),
        ("prepare_ns", 4),
        ("parent_tidied_ns", 4),
        ("parent_faults", 4),
        ("script_stack", 5),
        ("native_stack", 5),
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
        "load_opens",
        "load_failed_opens",
        "load_cache",
    ],
    since: 1,
    later: &[("load_opens", 2), ("load_failed_opens", 2), ("load_cache", 2)],
};

pub(super) const FAILED_EXEC: Table = Table {
    name: "failed_exec",
    columns: &["launch", "enter_ns", "return_ns", "path_text", "errno"],
    since: 1,
    later: &[],
};

pub(super) const THREAD: Table = Table {
    name: "thread",
    columns: &["task", "launch", "creator", "tid", "created_ns", "ended_ns", "cpu_ns"],
    since: 1,
    later: &[],
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
        "calls",
        "waker_certain",
    ],
    since: 1,
    later: &[("object", 3), ("calls", 5), ("waker_certain", 7)],
};

pub(super) const OBJECT: Table = Table {
    name: "object",
    columns: &["id", "kind", "device", "inode", "path_text"],
    since: 3,
    later: &[],
};

pub(super) const FRAME: Table = Table {
    name: "frame",
    columns: &[
        "id",
        "language",
        "function_text",
        "file_text",
        "line",
        "module_text",
        "address",
        "is_inlined",
    ],
    since: 5,
    later: &[],
};

pub(super) const STACK: Table = Table {
    name: "stack",
    columns: &["id", "frame", "caller", "is_truncated"],
    since: 5,
    later: &[],
};

pub(super) const SAMPLE: Table = Table {
    name: "sample",
    columns: &["task", "at_ns", "span_ns", "is_waiting", "stack"],
    since: 5,
    later: &[],
};

/// The checksums of all other tables.
pub(super) const CHECKSUM: Table = Table {
    name: "checksum",
    columns: &["name", "rows", "sum"],
    since: 8,
    later: &[],
};

/// Every table.
pub(super) const TABLES: [&Table; 15] = [
    &RECORDING,
    &MISSING,
    &CALIBRATION,
    &LOST,
    &TEXT,
    &LAUNCH,
    &EXEC,
    &FAILED_EXEC,
    &THREAD,
    &FRAME,
    &STACK,
    &OBJECT,
    &SLICE,
    &SAMPLE,
    &CHECKSUM,
];

impl Table {
    /// The maximum number of columns of any table.
    pub(super) const MOST_COLUMNS: usize = 32;

    /// Whether a recording of this version lacks a current column of the table.
    pub(super) fn is_absent(&self, column: &str, version: i32) -> bool {
        let mut later = self.later.iter();
        later.any(|(name, since)| *name == column && *since > version)
    }

    /// Selects every row of a recording of this version, ordered by rowid, which is the first value. Columns added later are NULL.
    pub(super) fn select(&self, version: i32) -> String {
        format!("{} ORDER BY rowid", self.select_some(version))
    }

    /// Selects all rowids in order.
    pub(super) fn select_ids(&self) -> String {
        format!("SELECT rowid FROM {} ORDER BY rowid", self.name)
    }

    /// Selects one row by its rowid, with the rowid as the first value.
    pub(super) fn select_one(&self) -> String {
        format!("{} WHERE rowid = ?", self.select_some(i32::MAX))
    }

    fn select_some(&self, version: i32) -> String {
        let known = |column: &&'static str| {
            if self.is_absent(column, version) {
                "NULL"
            } else {
                column
            }
        };
        let columns: Vec<&str> = self.columns.iter().map(known).collect();
        format!("SELECT rowid, {} FROM {}", columns.join(", "), self.name)
    }

    /// Inserts a row.
    pub(super) fn insert(&self) -> String {
        format!("INSERT INTO {} {}", self.name, values(self.columns))
    }

    /// Inserts a row unless one with its key exists.
    pub(super) fn insert_new(&self) -> String {
        format!("INSERT OR IGNORE INTO {} {}", self.name, values(self.columns))
    }

    /// Inserts or replaces a row.
    pub(super) fn replace(&self) -> String {
        format!("INSERT OR REPLACE INTO {} {}", self.name, values(self.columns))
    }

    /// Inserts a row unless one with its rowid exists. The rowid is bound last.
    pub(super) fn insert_new_at_rowid(&self) -> String {
        format!(
            "INSERT OR IGNORE INTO {} {}",
            self.name,
            values(&self.columns_and_rowid())
        )
    }

    /// Inserts or replaces a row under its rowid, which is bound last.
    pub(super) fn replace_at_rowid(&self) -> String {
        format!(
            "INSERT OR REPLACE INTO {} {}",
            self.name,
            values(&self.columns_and_rowid())
        )
    }

    fn columns_and_rowid(&self) -> Vec<&'static str> {
        self.columns.iter().copied().chain(["rowid"]).collect()
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
    fn an_older_version_is_read_without_what_came_later() {
        assert!(
            EXEC.select(2)
                .contains("cwd_text, load_opens, load_failed_opens, load_cache FROM")
        );
        assert!(EXEC.select(1).contains("cwd_text, NULL, NULL, NULL FROM"));
    }

    #[test]
    fn later_columns_are_columns() {
        for table in [LAUNCH, EXEC] {
            assert!(!table.later.is_empty());
            assert!(table.later.iter().all(|(name, _)| table.columns.contains(name)));
        }
    }

    #[test]
    fn the_columns_are_those_of_the_schema() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("schema.sql")).unwrap();
        for table in TABLES {
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
