// SPDX-License-Identifier: GPL-2.0

//! Exercise of filters: parsing, compiling, and matching records.

use std::sync::OnceLock;

use kernel::error::code::ENOMEM;

use super::scene;
use super::scene::Scene;
use super::scene::GROUPS;

/// Exercises a filter: any text is accepted or refused without a panic.
///
/// The text ends at the first NUL, like a filter. After that comes one more record: a byte with its
/// CPU, 16 bytes with the name of the task, and the record itself.
pub(crate) fn exercise(input: &[u8]) {
    static SCENES: OnceLock<Vec<Scene>> = OnceLock::new();
    match scene::parse(input) {
        Ok(filter) => {
            let mut rest = input.splitn(2, |&byte| byte == 0).skip(1);
            for scene in SCENES.get_or_init(scene::scenes) {
                scene.matches(&filter);
            }
            if let Some(scene) = rest.next().and_then(any_scene) {
                scene.matches(&filter);
            }
        }
        Err(error) => {
            assert!(error.caret <= input.len() + 2, "{error:?}");
            assert_ne!(error.errno, ENOMEM);
        }
    }
}

fn any_scene(bytes: &[u8]) -> Option<Scene> {
    let (&cpu, bytes) = bytes.split_first()?;
    let (&comm, record) = bytes.split_first_chunk()?;
    Some(Scene {
        record: record.to_vec(),
        cpu: cpu.into(),
        comm,
        group: usize::from(cpu) % GROUPS.len(),
    })
}
