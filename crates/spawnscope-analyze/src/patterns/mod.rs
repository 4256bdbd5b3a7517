//! Patterns in launches that several stages recognize: shells and their commands, chains of execs, pipelines, and language runtimes. No
//! pattern predicts or advises anything: `whatif` and the rules of `advice` decide what to make of them.

pub(crate) mod chains;
pub(crate) mod pipeline;
pub(crate) mod runtimes;
pub(crate) mod shells;
pub(crate) mod work;
