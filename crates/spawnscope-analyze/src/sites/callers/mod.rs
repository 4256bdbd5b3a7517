//! Call sites of launches, derived from the call chains of a recording. `call_site` picks the
//! reported frame, `count` counts call sites.

mod call_site;
mod count;

pub use call_site::{CallSite, Detail};
pub use count::{CallerCounts, Callers};
