// SPDX-License-Identifier: MIT OR Apache-2.0

//! Files with debugging information.

use crate::file::*;
use rhist_symbols::Error;
use rhist_symbols::Symbols;
use rhist_symbols::debug_paths;
use std::path::PathBuf;

#[test]
fn paths() {
    assert_eq!(
        debug_paths(&[0xab, 0xcd, 0x0f]),
        [
            PathBuf::from("/usr/lib/debug/.build-id/ab/cd0f.debug"),
            PathBuf::from("/run/current-system/sw/lib/debug/.build-id/ab/cd0f.debug"),
        ]
    );
    assert_eq!(debug_paths(&[0xab, 0xcd]).len(), 2);
    for size in [0, 1] {
        assert!(debug_paths(&vec![1; size]).is_empty());
    }
    for size in 2..200 {
        for path in debug_paths(&vec![1; size]) {
            assert_eq!(path.file_name().unwrap().len(), 2 * (size - 1) + 6);
            assert!(path.file_name().unwrap().len() <= 255);
        }
    }
    assert_eq!((debug_paths(&[1; 125]).len(), debug_paths(&[1; 126]).len()), (2, 0));
}

#[test]
fn symbols_of_the_same_build() {
    let image = File {
        symtab: None,
        build_id: b"abcd".to_vec(),
        ..File::new(Vec::new())
    };
    let debug = File {
        symtab: Some(vec![func("f", 0, 8), func("g", 16, 0)]),
        is_debug: true,
        ..image.clone()
    };
    let read = |image: &File, debug: &File| Symbols::read_with_debug(&image.bytes(), &debug.bytes());
    assert!(image.read().unwrap().is_empty());
    // Offsets are of the image.
    let expected = [(0, 8, "f".to_owned()), (16, 0x1000, "g".to_owned())];
    assert_eq!(parts(&read(&image, &debug).unwrap()), expected);
    let with = |file: &File, build_id: &[u8]| File {
        build_id: build_id.to_vec(),
        ..file.clone()
    };
    for other in [&b"abce"[..], b"abc", b"abcde", b""] {
        assert_eq!(read(&image, &with(&debug, other)).unwrap_err(), Error::OtherBuild);
        assert_eq!(read(&with(&image, other), &debug).unwrap_err(), Error::OtherBuild);
    }
    assert_eq!(
        read(&with(&image, b""), &with(&debug, b"")).unwrap_err(),
        Error::OtherBuild
    );
    assert_eq!(
        Symbols::read_with_debug(&image.bytes(), b"text").unwrap_err(),
        Error::File(rhist_elf::Error::NotElf)
    );
}
