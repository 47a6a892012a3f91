// SPDX-License-Identifier: GPL-2.0

//! Sets what Kbuild sets.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_UNLOCKED").is_some() {
        println!("cargo:rustc-cfg=CONFIG_X86");
        println!("cargo:rustc-cfg=CONFIG_X86_64");
    }
}
