//! The recording: one SQLite file between the collectors and everything else. `schema.sql` documents the format.
//! `writer` puts events in (through `assemble`, which joins them to rows), `reader` takes rows out.

pub mod reader;
