//! What would change the wall time: the replay of a recording, with and without changes.

pub mod dependence;
pub mod replay;
pub mod whatif;
