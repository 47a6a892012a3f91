#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scripts/package/dkms-build writes its messages to the output of DKMS: if that is a file, behind
# its contents, and before the next output of DKMS.

set -u
cd "$(dirname "$0")/../../.." || exit 1
. tools/testing/selftests/lib/tap.sh
shown=$work/said

# A compiler that is too old.
mkdir "$work/headers" "$work/bin"
printf '#!/bin/sh\necho "rustc 1.70.0 (90c541806 2023-05-31)"\n' >"$work/bin/rustc"
chmod 755 "$work/bin/rustc"
sentence="rhist: rustc 1.85 or newer is needed, and this machine has 1.70.0: apt install rustc rust-src, then run: dkms autoinstall -k 6.1"
printf '%s\n' "an older line" "the first line of DKMS" "" "$sentence" "the last line of DKMS, 77" >"$work/expected"

# As DKMS runs it, with the output in a log of its own.
cat >"$work/dkms" <<-END
	#!/bin/bash
	echo "the first line of DKMS" >&2
	PATH=$work/bin:\$PATH scripts/package/dkms-build 6.1 $work/headers \$\$ >$work/make.log 2>&1
	echo "the last line of DKMS, \$?" >&2
END

echo "an older line" >"$work/said"
bash "$work/dkms" 2>>"$work/said"
diff "$work/expected" "$work/said" >/dev/null
ok $? "a file that it goes on with"

{
	echo "an older line" >&2
	bash "$work/dkms"
} 2>"$work/said"
diff "$work/expected" "$work/said" >/dev/null
ok $? "a file that others have begun"

{ echo "an older line"; bash "$work/dkms" 2>&1; } | cat >"$work/said"
diff "$work/expected" "$work/said" >/dev/null
ok $? "a pipe"

grep -qxF "$sentence" "$work/make.log"
ok $? "it is in the log of DKMS, too"

# rust-src has another version than the compiler.
printf '#!/bin/sh\necho "rustc 1.85.1 (4eb161250 2025-03-15)"\n' >"$work/bin/rustc"
printf '#!/bin/sh\nfor name; do :; done\ncase $name in rustc) echo installed 1.85.1-1 ;; rust-src) echo installed 1.85.0-1 ;; esac\n' >"$work/bin/dpkg-query"
printf '#!/bin/sh\necho " rust-src | 1.85.1-$(cat "%s") | https://example.org trixie/main amd64 Packages"\n' "$work/has" >"$work/bin/apt-cache"
chmod 755 "$work/bin"/*
sentence="rhist: rust-src has to be of the same version as rustc, 1.85.1-1, and this machine has 1.85.0-1: apt install"
echo 1 >"$work/has"
bash "$work/dkms" 2>"$work/said"
grep -qxF "$sentence rust-src=1.85.1-1, then run: dkms autoinstall -k 6.1" "$work/said"
ok $? "the archive has rust-src of the compiler's version: which one to install"
echo 2 >"$work/has"
bash "$work/dkms" 2>"$work/said"
grep -qxF "$sentence rustc rust-src, then run: dkms autoinstall -k 6.1" "$work/said"
ok $? "the archive has a newer one only: both are to be installed"

# Without Rust in the archive for the architecture, the command is not packaged.
for libc in 2.41 ''; do
	mkdir "$work/tree$libc"
	RELEASE=6.1 ARCH=arm64 KERNEL_VERSION=6.1-1 LIBC=$libc scripts/package/mkdebian "$work/tree$libc" >"$work/said" 2>&1
	grep '^Package: ' "$work/tree$libc/debian/control" | xargs >"$work/packages$libc"
done
[ "$(cat "$work/packages2.41")" = "Package: rhist Package: rhist-dkms Package: rhist-modules-6.1 Package: rhist-tools" ]
ok $? "with the command: its package"
[ "$(cat "$work/packages")" = "Package: rhist Package: rhist-dkms Package: rhist-modules-6.1" ]
ok $? "without the command: the others"

finish
