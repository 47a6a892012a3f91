#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The folder user_objects: names, modes, the list of objects, and rules that are written to one of
# them. The vDSO is an object from the first histogram of stacks on, with number 0.
. "$(dirname "$0")/../lib/tracing.sh"

if [ "$TRACING" = "$KERNEL" ]; then
	skip "user_objects" "this is not rhist"
	finish
fi
cd "$TRACING" || exit 1

O=user_objects
USER=4711
# A program that others can reach.
io=/tmp/rhist-io
cp "$(command -v io)" $io && chmod 755 $io || exit 1

EVENT=events/syscalls/sys_enter_getpgid
# Others may have begun it.
is "$(head -n 1 $O/list)" "# number kind device inode generation size changed process begin state" "the list has columns"
echo 'hist:keys=common_ustack' >$EVENT/trigger || exit 1

# restore: gives all back to root
restore()
{
	chown 0:0 $O $O/list $O/0 $O/0/rules && chmod 700 $O $O/0 && chmod 440 $O/list && chmod 600 $O/0/rules
}

# --- names

is "$(ls -p | grep "^$O")" $O/ "the top directory has a folder"
is "$(ls -p "$KERNEL" | grep "^$O")" "" "the kernel's has none"
mkdir instances/rhist_o
no "and instances have none" test -e instances/rhist_o/$O
is "$(ls instances/rhist_o | grep "^$O")" "" "nor is it listed there"
rmdir instances/rhist_o
is "$(ls -a $O | grep -v '^[0-9]')" ".
..
list" "it has a list"
# Objects may come meanwhile, and stay.
numbers=$(sed '1d; s/ .*//' $O/list | sort -n)
folders=$(ls $O | grep '^[0-9]*$' | sort -n)
is "$(printf '%s\n' "$numbers" | while read -r n; do printf '%s\n' "$folders" | grep -x "$n" || echo "no $n"; done)" "$numbers" \
	"and a folder for each number in the list"
is "$(ls -a $O/0)" ".
..
image
rules" "which has two files"
is "$(stat -c '%n %F' $O $O/list $O/0 $O/0/rules $O/0/image | sed 's/regular empty/regular/')" "$O directory
$O/list regular file
$O/0 directory
$O/0/rules regular file
$O/0/image regular file" "all are what they are listed as"
for name in 00 +0 -0 0x0 x 0.0 4097 4294967295 4294967296 99999999999999999999 trace events rhist; do
	is "$(io open $O/$name r)" ENOENT "$name is no number of an object"
done
for name in list trace 0 events; do
	is "$(io open $O/0/$name r)" ENOENT "the folder of a number has no $name"
done
no "nobody makes a folder" mkdir $O/1000000
no "or a file" touch $O/x $O/0/x
no "removes one" rm -f $O/list
no "or a folder" rmdir $O/0
is "$(io rename $O/0/rules $O/0/x)" EPERM "or renames one"

# --- the list is read at any position, and again

is "$(head -n 2 $O/list)" "# number kind device inode generation size changed process begin state
0 vdso - - - - - - - $(sed -n '2s/.* //p' $O/list)" "the list begins with its columns and the vDSO"
exec 3<$O/list
is "$(io poll 3)" OK "it can be read in the beginning"
cat <&3 >"$work/list"
is "$(io poll 3)" EAGAIN "and not again"

# --- modes

is "$(stat -c '%n %u:%g %a' $O $O/list $O/0 $O/0/image $O/0/rules)" "$O 0:0 700
$O/list 0:0 440
$O/0 0:0 700
$O/0/image 0:0 400
$O/0/rules 0:0 600" "modes and owners"
can() { setpriv --reuid $USER --regid $USER --clear-groups $io open "$1" "$2"; }
chmod 711 .
is "$(can $O/list r) $(can $O d)" "EACCES EACCES" "others do not reach it"
chown $USER $O && chmod 500 $O
is "$(can $O/list r) $(can $O d) $(can $O/0 d)" "EACCES OK EACCES" "they may be given the folder alone"
chown $USER $O/list $O/0 $O/0/rules
chmod 400 $O/0/rules
is "$(can $O/list r) $(can $O/0/rules r) $(can $O/0/rules w)" "OK OK EACCES" "and files"
for i in 1 2 3; do echo 2 >/proc/sys/vm/drop_caches; done
is "$(stat -c '%n %u %a' $O $O/list $O/0 $O/0/rules)" "$O $USER 500
$O/list $USER 440
$O/0 $USER 700
$O/0/rules $USER 400" "owners and modes last when they are looked up anew"
restore
is "$(stat -c '%n %u:%g %a' $O $O/list $O/0 $O/0/rules)" "$O 0:0 700
$O/list 0:0 440
$O/0 0:0 700
$O/0/rules 0:0 600" "and are taken back"
chmod 700 .

# --- images

is "$(io open $O/0/image r)" ESTALE "the vDSO has no file"

# number FILE: prints the number of its object, which is the last with its inode
number()
{
	dev=$(stat -c %d "$1")
	major=$((dev >> 8 & 0xfff)) minor=$((dev & 0xff | dev >> 12 & 0xfff00))
	sed -n "s/ file $major:$minor $(stat -c %i "$1") .*//p" $O/list | tail -n 1
}
# call PROGRAM...: runs a copy of the program that makes one call
call() { "$@" --call || echo "$1: $?"; }
# released NUMBER: waits until its file is not held any more
released()
{
	for i in $(seq 300); do
		[ "$(io open $O/$1/image r)" != ESTALE ] || return 0
		sleep 0.1
	done
	return 1
}

ustack=$(command -v ustack)
mkdir $work/fs && mount -t tmpfs -o mode=755 tmpfs $work/fs && chmod 711 $work || exit 1
cp $ustack $work/fs/call && chmod 711 $work/fs/call
call $work/fs/call
n=$(number $work/fs/call)
is "$(stat -c %s $O/$n/image)" "$(stat -c %s $ustack)" "an image has the size of the file"
yes "and its contents" cmp $O/$n/image $ustack
is "$(tail -c 1000 $O/$n/image | cksum)" "$(tail -c 1000 $ustack | cksum)" "also from the end"
is "$(dd if=$O/$n/image bs=1000 skip=7 count=3 2>/dev/null | cksum)" "$(dd if=$ustack bs=1000 skip=7 count=3 2>/dev/null | cksum)" \
	"and in between"
is "$(io map 5 5<$ustack) $(io map 5 5<$O/$n/image)" "OK ENODEV" "it cannot be mapped"
is "$(io write $O/$n/image rw x)" EINVAL "nor does it take writes"
chmod 711 .
chown $USER $O $O/$n $O/$n/image
is "$(can $O/$n/image r)" EACCES "a user to whom it is given cannot read a file of others"
chmod 755 $work/fs/call
is "$(can $O/$n/image r)" OK "but one that all may read"
chmod 700 $work/fs
is "$(can $work/fs/call r) $(can $O/$n/image r)" "EACCES OK" "also in a directory of others"
rm $work/fs/call
yes "a deleted file is read" cmp $O/$n/image $ustack

exec 5<$O/$n/image
yes "it is released soon" released $n
no "while an image is open, its file system is in use" umount $work/fs
is "$(cksum <&5)" "$(cksum <$ustack)" "and it can be read"
exec 5<&-
yes "and not longer" umount $work/fs

mount -t tmpfs -o mode=755 tmpfs $work/fs
cp $ustack $work/fs/call
call $work/fs/call
n=$(number $work/fs/call)
yes "another is released" released $n
call $work/fs/call
yes "and read again, if somebody wanted to, and a hit came" cmp $O/$n/image $ustack
released $n
umount $work/fs

# The newest object is in the last line.
call io memory $ustack >"$work/said"
n=$(sed -n '$s/ file .*//p' $O/list)
yes "a program that is in memory only" cmp $O/$n/image $ustack
chown $USER $O $O/$n $O/$n/image
is "$(can $O/$n/image r)" EACCES "is for its owner only, though its mode lets all read it"
chown 0 $O $O/$n $O/$n/image
chmod 700 .

# --- rules: their words, with \ooo for a byte

case $(uname -m) in
aarch64) machine='\267\0' ;;
*) machine='\76\0' ;;
esac
one='\1\0\0\0' zero='\0\0\0\0'
# Code with frame pointers, as it is walked without rules: a row in the first page.
header="RUR1$machine\\1\\0$one$zero$one$zero"
frame="\\11\\0\\0\\0$zero$zero"
good="$header$frame$zero$zero"

# write TEXT...: writes the pieces to one open file, and prints the error of the last
write()
{
	(
		exec 3>$O/0/rules
		said=
		for piece; do
			said=$(env printf "$piece" 2>&1 >&3)
		done
		echo "${said##*: }"
	)
}
logged() { sed -n 's/^\[ *[0-9.]*\] //; /^rhist:user_objects:0: error: /{s///;p}' error_log | tail -n 1; }

is "$(cat $O/0/rules)" "" "an object has no rules"
is "$(write "$header" "$frame")" "" "some of its rules"
is "$(cat $O/0/rules)" "" "are nothing"
for case in \
	"another file|XUR1$machine\\1\\0$one$zero$one$zero|The header is unknown, or of another architecture" \
	"another machine|RUR1\\1\\0\\1\\0$one$zero$one$zero|The header is unknown, or of another architecture" \
	"many rows|RUR1$machine\\1\\0\\1\\0\\100\\0$zero$one$zero|Too many rows or pages" \
	"too long|$good$zero|More than the header announces" \
	"a byte too long|$good\\0|More than the header announces" \
	"an unknown rule|$header\\377\\0\\0\\0$zero$zero$zero$zero|A rule is unknown, or the first one is not for gaps" \
	"a page out of order|$header$frame$one$zero|The first rows of pages are out of order" \
	"a row with a missing rule|$header$frame$zero\\0\\0\\1\\0|A row is out of order, or has a rule that is missing"; do
	name=${case%%|*} text=${case##*|} rules=${case#*|}
	rules=${rules%|*}
	is "$(write "$rules")" "Invalid argument" "$name: refused"
	is "$(logged)" "$text" "$name: and the error log says why"
	is "$(write "$rules" "$good")" "Invalid argument" "$name: nothing follows a mistake"
done
is "$(cat $O/0/rules)" "" "no rules came of that"
is "$(write R UR1 "$machine" "\\1\\0\\1" "\\0\\0\\0$zero$one$zero$frame$zero" "\\0\\0\\0")" "" "all but one byte"
is "$(cat $O/0/rules)" "" "are nothing, either"
exec 4<$O/list
cat <&4 >"$work/list"
is "$(io poll 4)" EAGAIN "a list that was read"
is "$(write R UR1 "$machine" "\\1\\0\\1" "\\0\\0\\0$zero$one$zero$frame$zero" "\\0\\0\\0" "\\0")" "" "rules in pieces"
is "$(cat $O/0/rules)" "rows 1 bytes 44" "are the object's with the last one"
is "$(sed -n 2p $O/list)" "0 vdso - - - - - - - rules" "and the list says so"
is "$(io poll 4)" OK "and can be read anew"
is "$(write "$good")" "File exists" "others cannot follow"
is "$(write "$good" "$zero")" "Invalid argument" "nor more words"
remove_triggers $EVENT
rm -f $io
finish
