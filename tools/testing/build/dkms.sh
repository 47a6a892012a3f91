#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scripts/package/dkms-build writes its messages to the output of DKMS: if that is a file, behind its contents, and before
# the next output of DKMS.

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

finish
