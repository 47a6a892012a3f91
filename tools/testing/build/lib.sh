# SPDX-License-Identifier: GPL-2.0
#
# For the tests of this folder, which name themselves in $test: points, and a folder $work, whose file "said" is shown
# where a point fails.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0 failed=0

result() { # result STATUS NAME
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $count - $test: $2"
	else
		echo "not ok $count - $test: $2"
		[ ! -e "$work/said" ] || sed 's/^/# said: /' "$work/said"
		failed=$((failed + 1))
	fi
}

finish() {
	echo "1..$count"
	echo "$((count - failed)) passed, $failed failed"
	[ $failed -eq 0 ]
}
