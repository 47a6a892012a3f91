#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# BTF out of boot images; and which file with BTF scripts/kbuild chooses.
#
# usage: boot-btf.sh VMLINUX IMAGE    of the lab's kernel

set -u
vmlinux=${1:?} image=${2:?}
cd "$(dirname "$0")/../../.." || exit 1
. tools/testing/selftests/lib/tap.sh
shown=$work/said

objcopy --dump-section .BTF="$work/btf" "$vmlinux" "$work/other" 2>"$work/said"
scripts/boot-btf "$image" >"$work/out" 2>"$work/said"
yes "the lab's kernel: the BTF of its vmlinux" cmp -s "$work/btf" "$work/out"

# A boot image of x86, laid out as in boot.rst: one sector, three of real mode, 64 bytes of code,
# then the kernel.
bzimage() { # bzimage PAYLOAD
	python3 - "$1" <<-'END'
		import struct, sys
		payload = open(sys.argv[1], "rb").read()
		image = bytearray(4 * 512 + 64) + payload
		image[0x1f1] = 3
		image[0x202:0x206] = b"HdrS"
		struct.pack_into("<H", image, 0x206, 0x20f)
		struct.pack_into("<II", image, 0x248, 64, len(payload))
		sys.stdout.buffer.write(image + b"behind")
	END
}
# Appends the size of the unpacked file, like the kernel's build.
sized() { cat; python3 -c 'import os, struct, sys; sys.stdout.buffer.write(struct.pack("<I", os.path.getsize(sys.argv[1])))' "$work/kernel"; }

objcopy -O binary --only-section=.text "$vmlinux" "$work/text"
{ head -c 1000000 "$work/text"; cat "$work/btf"; head -c 100000 "$work/text"; } >"$work/kernel"
gzip -c "$work/kernel" >"$work/gzip"
xz -c --check=crc32 "$work/kernel" | sized >"$work/xz"
xz -c --format=lzma "$work/kernel" | sized >"$work/lzma"
python3 -c 'import bz2, sys; sys.stdout.buffer.write(bz2.compress(open(sys.argv[1], "rb").read(), 1))' "$work/kernel" | sized >"$work/bzip2"
zstd -qc "$work/kernel" | sized >"$work/zstd"
for format in gzip xz lzma bzip2 zstd kernel; do
	bzimage "$work/$format" >"$work/image"
	scripts/boot-btf "$work/image" >"$work/out" 2>"$work/said"
	yes "a kernel packed by $format" cmp -s "$work/btf" "$work/out"
done
# As newer tools write it: the header has 8 bytes more, with the offset of the layout, which is
# behind all else.
python3 -c 'import struct, sys; data = open(sys.argv[1], "rb").read(); strings, length = struct.unpack_from("<II", data, 16)
sys.stdout.buffer.write(data[:4] + struct.pack("<I", 32) + data[8:24] + struct.pack("<II", strings + length, 5) + data[24:] + b"12345")
' "$work/btf" >"$work/long"
{ head -c 1000000 "$work/text"; cat "$work/long" "$work/text"; } >"$work/kernel"
bzimage "$work/kernel" >"$work/image"
scripts/boot-btf "$work/image" >"$work/out" 2>"$work/said"
yes "BTF with a layout" cmp -s "$work/long" "$work/out"
scripts/btf-header "$work/btf" >"$work/header" 2>"$work/said"
scripts/btf-header "$work/out" >"$work/out-header" 2>>"$work/said"
yes "BTF with a layout: the same structures" [ "$(grep -c ';$' "$work/header")" -gt 50 -a \
	"$(grep -v '^/\* Made from' "$work/header")" = "$(grep -v '^/\* Made from' "$work/out-header")" ]
scripts/boot-btf "$work/gzip" >"$work/out" 2>"$work/said"
yes "an image of arm64, by gzip" cmp -s "$work/btf" "$work/out"
python3 -c 'import struct, sys; data = open(sys.argv[1], "rb").read()
sys.stdout.buffer.write(struct.pack("<4s4sII", b"MZ\0\0", b"zimg", 64, len(data)) + bytes(48) + data)' "$work/zstd" >"$work/image"
scripts/boot-btf "$work/image" >"$work/out" 2>"$work/said"
yes "an image of arm64 that EFI starts" cmp -s "$work/btf" "$work/out"

refused() { # refused NAME SENTENCE
	scripts/boot-btf "$work/image" >"$work/out" 2>"$work/said"
	[ $? = 1 ] && [ ! -s "$work/out" ] && grep -qF "$2" "$work/said" && [ "$(wc -l <"$work/said")" = 1 ]
	ok $? "$1"
}
bzimage "$work/text" >"$work/image"
refused "a kernel without BTF: said" "rhist: there is no BTF in $work/image"
head -c 100000 "$work/zstd" >"$work/part"
bzimage "$work/part" >"$work/image"
refused "a part of one, by zstd: said" "rhist: zstd cannot unpack the kernel: "
head -c 100000 "$work/gzip" >"$work/part"
bzimage "$work/part" >"$work/image"
refused "a part of one, by gzip: said" "rhist: $work/image cannot be unpacked: "
rm "$work/image"
refused "no file: said" "rhist: $work/image: No such file or directory"

# Arguments that make gets, for headers of a kernel other than the running one.
mkdir -p "$work/bin" "$work/kdir/include/config" "$work/module"
printf '#!/bin/sh\nprintf "%%s\\n" "$@"\n' >"$work/bin/make"
printf '#!/bin/sh\necho "rustc 1.85.0 (4d91de4e4 2025-02-17)"\n' >"$work/bin/rustc"
chmod 755 "$work/bin"/*
echo 1.2.3-rhist >"$work/kdir/include/config/kernel.release"
echo KBUILD_EXTMOD_OUTPUT >"$work/kdir/Makefile"
echo RHIST_BTF >"$work/module/Kbuild"
chosen() {
	PATH=$work/bin:$PATH scripts/kbuild "$work/kdir" "$work/module" "$work/made" modules "$@" >"$work/said" 2>&1
	status=$?
	btf=$(sed -n 's/^RHIST_BTF=//p' "$work/said" | tail -n 1)
}
chosen
yes "headers without vmlinux, and no image: status 1" [ "$status" = 1 ]
yes "headers without vmlinux, and no image: said" \
	grep -qF "rhist: there is no BTF of the kernel 1.2.3-rhist: neither $work/kdir/vmlinux nor its boot image is there" "$work/said"
chosen RHIST_BTF="$image"
yes "an image that is named: its BTF" cmp -s "$work/btf" "$btf"
python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack("<HBBIIIIIx", 0xeb9f, 1, 0, 24, 0, 0, 0, 1))' >"$work/other-btf"
bzimage "$work/other-btf" >"$work/image"
touch -d 2020-01-01 "$work/image"
chosen RHIST_BTF="$work/image"
yes "an older image, of another kernel: its own BTF" cmp -s "$work/other-btf" "$btf"
cp "$work/btf" "$work/kdir/vmlinux"
chosen
yes "the vmlinux of the headers" [ "$btf" = "$work/kdir/vmlinux" ]
here=$PWD
cd "$work" || exit 1
PATH=$work/bin:$PATH "$here/scripts/kbuild" kdir module made modules RHIST_BTF=other-btf RHIST_CRATES=some/where >"$work/said" 2>&1
cd "$here" || exit 1
yes "a file with BTF, and the crates, from where one stands" [ "$(grep -E '^RHIST_(BTF|CRATES)=' "$work/said" | sort | tr '\n' ' ')" = \
	"RHIST_BTF=$work/other-btf RHIST_CRATES=$work/some/where " ]

# Files that have to be compiled anew, though a change may have an older time than the compiled
# ones.
compiled() { mkdir -p "$work/made/crates" && touch "$work/made/.rhist.o.cmd" "$work/made/crates/.core.o.cmd"; }
kept() { [ -e "$work/made/.rhist.o.cmd" ] && [ -e "$work/made/crates/.core.o.cmd" ]; }
anew() { [ ! -e "$work/made/.rhist.o.cmd" ] && [ ! -e "$work/made/crates/.core.o.cmd" ]; }
echo CONFIG_X=y >"$work/kdir/.config"
chosen
compiled
chosen
yes "the same kernel: nothing is compiled anew" kept
echo CONFIG_X=n >"$work/kdir/.config"
touch -d 2020-01-01 "$work/kdir/.config"
chosen
yes "another kernel in the same place: all of it" anew
compiled
echo more >>"$work/kdir/vmlinux"
chosen
yes "other BTF: all of it" anew
compiled
cp -r "$work/kdir" "$work/kdir2"
PATH=$work/bin:$PATH scripts/kbuild "$work/kdir2" "$work/module" "$work/made" modules >"$work/said" 2>&1
yes "the same in another place: all of it" anew
chosen
compiled
sed -i s/1.85.0/1.86.0/ "$work/bin/rustc"
chosen
yes "another compiler: all of it" anew
sed s/1.86.0/1.97.0/ "$work/bin/rustc" >"$work/bin/rustc-1.97"
chmod 755 "$work/bin/rustc-1.97"
chosen RUSTC=rustc-1.97
yes "a compiler that is named: the kernel's flags are for it" grep -qx CONFIG_RUSTC_VERSION=109700 "$work/said"
yes "a compiler that is named: it compiles" grep -qx RUSTC=rustc-1.97 "$work/said"
yes "a compiler that is named: also what runs here" grep -qx HOSTRUSTC=rustc-1.97 "$work/said"

finish
