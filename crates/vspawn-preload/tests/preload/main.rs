//! Compares `libvspawn_preload.so` with the shells that it skips: everything that a launched
//! program can see, its output and its status are the same with and without the library.

mod build;
mod differential;
mod identity;
mod in_place;
#[path = "../../../vspawn-capi/tests/programs/library.rs"]
mod library;
#[path = "../../../spawnscope/src/cli/accel/obstacle.rs"]
mod obstacle;
mod obstacles;
mod programs;
mod redirections;
#[path = "../../src/text.rs"]
mod text;
