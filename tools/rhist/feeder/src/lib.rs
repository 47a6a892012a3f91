// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rules for the stacks of programs: reads the files that programs have mapped, compiles their
//! unwind information, and gives the tables to the module, in `user_objects/` of its tracing
//! directory.
//!
//! A [`Feeder`] watches the list of objects, in the thread that calls [`Feeder::run()`]. Each file
//! is read and compiled by a child process of its own, since any user may have built it, and since
//! its file system may not answer: [`compiler`] has its part of the work.
//!
//! Another child reads the names of the functions of a file, or of code that a process has made
//! while it runs, from the perf map of the process. [`Names`] keeps them, so that stacks
//! can be printed after their programs have ended.

mod base_name;
mod compilation;
pub mod compiler;
mod confinement;
mod feeder;
mod folder;
mod input;
mod list;
mod map_file;
mod name_table;
mod namer;
mod names;
mod news;
mod queue;
mod thread;

pub use feeder::Feeder;
pub use feeder::Settings;
pub use feeder::Until;
pub use list::Object;
pub use names::Names;
pub use news::News;
pub use news::Summary;
pub use thread::FeederThread;
