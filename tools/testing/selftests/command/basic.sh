#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The command starts, prints its version, and exits with status 2 for unknown arguments.
. "$(dirname "$0")/../lib/tracing.sh"

version=$(sed -n 's/^MODULE_VERSION("\(.*\)");$/\1/p' "$here/../../../../rust/module.c")
is "$("$RHIST_COMMAND" --version)" "rhist $version" "rhist --version: that of the module"
"$RHIST_COMMAND" --no-such-option >"$work/out" 2>"$work/err"
is $? 2 "an unknown option: it ends with 2"
is "$(cat "$work/out")" "" "and prints nothing to where results go"
yes "but says which one" grep -q no-such-option "$work/err"
if have_probes; then
	"$RHIST_COMMAND" count kprobe:vfs_raed -d 1 >"$work/out" 2>"$work/err"
	is $? 2 "a function that the kernel has not: it ends with 2"
	yes "and says which one was probably meant" grep -q 'did you mean vfs_read' "$work/err"
fi
finish
