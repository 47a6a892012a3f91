# SPDX-License-Identifier: GPL-2.0
#
# Points of a shell test, by the kernel's own ktap_helpers.sh. To be sourced, by sh or bash, in a
# guest or at the top of the checkout.
#
# A failed point prints the output of its command, and the files named in $shown. $work is a folder
# that is removed at the end.

. "${RHIST_KSELFTEST:-$(scripts/lab path source)/tools/testing/selftests}/kselftest/ktap_helpers.sh"

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
shown=
: >"$work/points"
ktap_print_header

# ktap HELPER NAME: the counts are in a file, since a check may run at the end of a pipe. By
# themselves, the helpers split and expand names, and set variables of tests.
ktap()
{
	local - IFS= result description directive
	set -f
	. "$work/points"
	"$@"
	echo "KTAP_TESTNO=$KTAP_TESTNO KTAP_CNT_PASS=$KTAP_CNT_PASS KTAP_CNT_FAIL=$KTAP_CNT_FAIL" \
		"KTAP_CNT_SKIP=$KTAP_CNT_SKIP" >"$work/points"
}

# ok STATUS NAME: a point that passes if a command ended with 0
ok()
{
	if [ "$1" = 0 ]; then
		ktap ktap_test_pass "$2"
		return
	fi
	ktap ktap_test_fail "$2"
	for file in $shown; do
		[ ! -s "$file" ] || sed "s|^|# ${file##*/}: |" "$file" | tail -n 30
	done
	return 1
}

# skip NAME REASON
skip() { ktap ktap_test_skip "$1 ($2)"; }

# is GOT EXPECTED NAME: a point that passes if both are equal, byte for byte
is()
{
	if [ "$1" = "$2" ]; then
		ok 0 "$3"
		return
	fi
	ok 1 "$3"
	printf '%s\n' "$2" | sed 's/^/# expected: /'
	printf '%s\n' "$1" | sed 's/^/# got:      /'
	return 1
}

# same FILE NAME: a point that passes if the file equals stdin, byte for byte
same()
{
	cat >"$work/expected"
	cat "$1" >"$work/got" 2>&1
	if cmp -s "$work/expected" "$work/got"; then
		ok 0 "$2"
		return
	fi
	ok 1 "$2"
	diff -a -u --label expected --label got "$work/expected" "$work/got" | sed 's/^/# /' | head -60
	return 1
}

# yes NAME COMMAND...: the command succeeds
yes()
{
	yes_name=$1
	shift
	yes_said=$("$@" 2>&1)
	yes_status=$?
	ok $yes_status "$yes_name" && return
	printf '%s\n' "$yes_said" | sed 's/^/# /' | head -20
	return 1
}

# no NAME COMMAND...: the command fails
no()
{
	no_name=$1
	shift
	if no_said=$("$@" 2>&1); then
		ok 1 "$no_name"
		printf '%s\n' "$no_said" | sed 's/^/# /' | head -20
		return 1
	fi
	ok 0 "$no_name"
}

# finish: to be called last, if the test is to end there
finish()
{
	. "$work/points"
	ktap_set_plan $((KTAP_TESTNO - 1))
	ktap_finished
}
