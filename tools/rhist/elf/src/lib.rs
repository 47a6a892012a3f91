// SPDX-License-Identifier: MIT OR Apache-2.0

//! ELF files of programs and libraries: where code is in the file, contents of sections, and build
//! ids.
//!
//! Files may be hostile: every offset and size is checked before it is used.

mod build_id;
mod error;
mod image;

pub use build_id::build_id;
pub use error::Error;
pub use image::Code;
pub use image::Image;
pub use image::LE;
pub use image::Machine;
pub use image::Mapped;
pub use image::Section;
pub use image::Segment;
