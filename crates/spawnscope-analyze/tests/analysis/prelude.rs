//! What most tests of the analysis use.

pub(crate) use crate::builder::{Builder, ROOT, Spans};
pub(crate) use crate::recordings::DIRNAME;
pub(crate) use crate::serial::{CLOCK_NANOSLEEP, READ, Serial, WAIT4, predict, thread, timelines, timelines_with};
pub(crate) use crate::slices::{created, ended, slice};
pub(crate) use spawnscope_analyze::model::external_wait::ExternalWait;
pub(crate) use spawnscope_analyze::model::phases::Phase;
pub(crate) use spawnscope_analyze::predict::whatif::changes::Change;
pub(crate) use spawnscope_analyze::predict::whatif::constants::Constants;
pub(crate) use spawnscope_analyze::waits::attribution::attributed_waits;
pub(crate) use spawnscope_analyze::{Causes, Forest, critical_path};
pub(crate) use spawnscope_data::event::{
    Calibration, Constant, Language, LaunchId, LeftCpu, Mechanism, Nanos, ObjectKind, Pid, TaskId,
};
pub(crate) use spawnscope_data::rows::{Recording, SliceRow, WakerRow};
