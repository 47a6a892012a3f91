#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Each checkout uses the objects that scripts/lab objects has compiled, except where they do not
# fit. For the lab's kernel.

set -u
cd "$(dirname "$0")/../../.." || exit 1
. tools/testing/selftests/lib/tap.sh
shown=$work/said
lab=$PWD/scripts/lab
# The compilers must see the checkout, not other folders of this machine.
out=$PWD/build/test/objects

compile() { # compile ARG… TARGET…
	# shellcheck disable=SC2046
	(unset MAKEFLAGS MFLAGS MAKELEVEL
	"$lab" chroot stock -- scripts/kbuild "$("$lab" path kdir)" "$PWD" "$out" $("$lab" path tools) RHIST_BTF="$("$lab" path btf)" \
		RHIST_CRATES="$("$lab" path crates)" RHIST_EVENT_HEADERS=sched "$@") >"$work/said" 2>&1
}
compiled() { grep -E '^ +(RUSTC|BINDGEN|CC|GEN) ' "$work/said"; }

rm -rf "$out"
# An interrupted copy.
mkdir -p "$out/crates.part"
: >"$out/crates.part/kernel.o"
"$lab" objects stock "$out" >"$work/said" 2>&1
yes "a folder gets them" [ -s "$out/crates/kernel.o" -a -e "$out/crates/libkernel.rmeta" ]
compile crates/kernel.o crates/helpers.o
yes "they are what the rules make" [ $? = 0 ]
no "nothing is compiled" compiled
before=$(stat -c %Y.%i "$out/crates/kernel.o")
"$lab" objects stock "$out" >"$work/said" 2>&1
yes "what is there is left alone" [ "$(stat -c %Y.%i "$out/crates/kernel.o")" = "$before" ]
compile KCFLAGS=-DOTHER crates/helpers.o
yes "with another flag, they are compiled anew" grep -q 'CC .*crates/helpers.o' "$work/said"
rm -rf "$out"
finish
