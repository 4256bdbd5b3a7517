//! Tables by the numbers of processes and threads, which the tracer consults many times at each
//! stop: quick for numbers, unlike those of the standard library.

pub use foldhash::{HashMap as IdMap, HashSet as IdSet};
