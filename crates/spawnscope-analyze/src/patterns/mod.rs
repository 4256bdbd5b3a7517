//! Recognizes patterns in launches: shells and their commands, chains of execs, pipelines,
//! recursive makes, subcommands, queries, package scripts, regular expressions, and language
//! runtimes. `whatif` and the rules of `advice` draw conclusions from them.

pub(crate) mod calls;
pub(crate) mod chains;
pub(crate) mod expressions;
pub(crate) mod package_scripts;
pub(crate) mod pipeline;
pub(crate) mod programs;
pub(crate) mod queries;
pub(crate) mod recursive_make;
pub(crate) mod runtimes;
pub(crate) mod script;
pub(crate) mod shell_syntax;
pub(crate) mod shells;
pub(crate) mod words;
pub(crate) mod xargs;
