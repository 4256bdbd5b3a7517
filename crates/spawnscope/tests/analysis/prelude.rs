//! What most tests of the outputs use.

pub(crate) use crate::builder::{Builder, ROOT, Spans, blank};
pub(crate) use crate::printed::{by_command, plain, running, styled_tree, table_of, whole_table};
pub(crate) use crate::serial::{READ, Serial, timelines};
pub(crate) use crate::texts::{assert_contains, unwrapped};
pub(crate) use spawnscope::analyze::{Forest, GroupBy, Report, report};
pub(crate) use spawnscope::event::{Language, LaunchId, Nanos, Pid};
pub(crate) use spawnscope::present::{json, table};
pub(crate) use spawnscope::record::reader::{Recording, SliceRow};
