#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scripts/crates takes the expected files out of a kernel's source, and the build notices an import
# of Rust.
#
# usage: crates.sh SOURCE    of the lab's kernel

set -u
source=${1:?}
cd "$(dirname "$0")/../../.." || exit 1
. tools/testing/selftests/lib/tap.sh
shown=$work/said

scripts/crates "$source" "$work/crates" >"$work/said" 2>&1
yes "the lab's kernel has what is taken" [ $? = 0 ]
yes "compressed, it is 400 kB at most" [ "$(tar -c -C "$work" crates | xz -9 | wc -c)" -le 400000 ]
yes "what is not taken is not declared either" eval \
	'! sed -n "s/^pub mod \(.*\);/\1/p" "$work/crates/kernel/lib.rs" | while read -r name; do [ -e "$work/crates/kernel/$name.rs" ] || echo; done | grep -q ^'

mkdir "$work/source"
cp -r "$source"/{Makefile,rust} "$work/source"
mkdir -p "$work/source"/{scripts,init}
cp "$source/scripts/generate_rust_target.rs" "$work/source/scripts"
cp "$source/init/Kconfig" "$work/source/init"
sed -i 's/%pA/%pB/' "$work/source/rust/kernel/print.rs"
scripts/crates "$work/source" "$work/other" >"$work/said" 2>&1
yes "another crate: status 1" [ $? = 1 ]
yes "another crate: what cannot be mended is said, and why" grep -qF "kernel/print.rs has nothing to mend (no %pA)" "$work/said"

sed -i 's/^PATCHLEVEL = .*/PATCHLEVEL = 99/' "$work/source/Makefile"
scripts/crates "$work/source" "$work/other" >"$work/said" 2>&1
yes "another version: status 1" [ $? = 1 ]
yes "another version: said" grep -qF "is not the source of Linux 7.3" "$work/said"

for name in rust_build_error _RNvCs123_4core3foo __rust_alloc; do
	echo "void $name(void); void f(void) { $name(); }" | gcc -x c -c -o "$work/$name.o" -
	scripts/rust-imports "$work/$name.o" >"$work/said" 2>&1
	yes "an import of $name: status 1" [ $? = 1 ]
	yes "an import of $name: named" grep -qw "$name" "$work/said"
done
echo "void printk(void); void rust_own(void) { printk(); }" | gcc -x c -c -o "$work/c.o" -
yes "an import of C, and Rust of its own" scripts/rust-imports "$work/c.o"

finish
