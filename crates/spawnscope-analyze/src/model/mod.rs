//! What was recorded, as things that can be asked: launches with their phases and tree, threads
//! with their slices and waits of unknown cause, and parts of a recording. Nothing here knows why a
//! thread waited.

pub(crate) mod compact;
pub(crate) mod creation_costs;
pub mod external_wait;
pub mod frames;
pub(crate) mod grouped;
pub(crate) mod join;
pub(crate) mod known;
pub mod launch;
pub(crate) mod names;
pub mod phases;
pub mod pieces;
pub(crate) mod poll_loop;
pub mod samples;
pub mod slices;
pub mod timeline;
pub mod tree;
pub mod tree_view;
pub(crate) mod unknown_waits;
pub mod window;
