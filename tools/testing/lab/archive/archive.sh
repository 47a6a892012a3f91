# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A made-up archive, whose packages are nearly or quite empty, and labs that use only this one. To
# be sourced by the tests beside it, which run in its folder.

set -u
cd ../../../.. || exit 1
real=$(scripts/lab path lab)
. tools/testing/selftests/lib/tap.sh
# shellcheck disable=SC2034 # for tap.sh
shown=$work/said

# The machine's own apt uses this archive only.
mkdir -p "$work/apt/state/lists/partial"
echo "deb [trusted=yes] file:$work/debian trixie main" >"$work/apt/sources.list"
cat >"$work/apt.conf" <<END
Dir::Etc::SourceList "$work/apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State "$work/apt/state";
Acquire::AllowInsecureRepositories "true";
Acquire::Retries::Delay "false";
APT::Get::AllowUnauthenticated "true";
END
export APT_CONFIG=$work/apt.conf RHIST_KERNELS=$work/kernels RHIST_LAB=$work/lab RHIST_LAB_PAUSE=0

# A lab with only the pieces that others have made.
new_lab() {
	rm -rf "$RHIST_LAB"
	mkdir -p "$RHIST_LAB"
	for piece in virtme root; do
		ln -s "$real/$piece" "$RHIST_LAB/$piece"
		cp "$real/$piece.recipe" "$RHIST_LAB"
	done
}

# A package with nothing in it.
mkdir -p "$work/empty/DEBIAN"
printf 'Package: empty\nVersion: 1\nArchitecture: all\nMaintainer: Nobody\nDescription: x\n' >"$work/empty/DEBIAN/control"
dpkg-deb -Znone -b "$work/empty" "$work/empty.deb" >"$work/said"

# Contains the files in FOLDER. $fields are added to its entry.
fields=
package() { # package SUITE NAME VERSION [ARCHITECTURE [DEPENDS [FOLDER]]]
	local architecture=${4-amd64}
	local file=pool/$2_${3}_$architecture.deb made=$work/empty.deb
	mkdir -p "$work/debian/pool"
	if [ "${6-}" ]; then
		mkdir -p "$6/DEBIAN"
		printf 'Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: Nobody\nDescription: x\n' "$2" "$3" "$architecture" \
			>"$6/DEBIAN/control"
		made=$work/made.deb
		dpkg-deb -Znone -b "$6" "$made" >"$work/said"
	fi
	cp "$made" "$work/debian/$file"
	printf 'Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: Nobody\n%s%sFilename: %s\nSize: %s\nSHA256: %s\n\n' \
		"$2" "$3" "$architecture" "${5:+Depends: $5$'\n'}" "${fields:+$fields$'\n'}" "$file" "$(stat -c %s "$made")" "$(sha256sum <"$made" | cut -d' ' -f1)" \
		>>"$work/debian/dists/$1/main/binary-$architecture/Packages"
}

# offer SUITE RELEASE VERSION [nosource]: a kernel in the archive, with its source
offer() {
	local series
	series=$(cut -d. -f1,2 <<<"$2")
	package "$1" "linux-headers-$2" "$3" amd64 "${depends-}"
	for name in "linux-binary-unsigned-$2" "linux-modules-$2"; do package "$1" "$name" "$3"; done
	[ "${4-}" = nosource ] || package "$1" "linux-source-${series%%[+-]*}" "$3"
}

suites="trixie trixie-backports sid experimental"

empty_archive() {
	rm -rf "$work/debian"
	for suite in $suites; do
		for architecture in amd64 arm64; do
			mkdir -p "$work/debian/dists/$suite/main/binary-$architecture"
			# apt does not keep an empty list.
			package "$suite" something 1 "$architecture"
		done
		printf 'Origin: Debian\nLabel: Debian\nSuite: %s\nCodename: %s\nArchitectures: amd64 arm64\nComponents: main\nDate: %s\nSHA256:\n' \
			"$suite" "$suite" "$(date -u "+%a, %d %b %Y %T UTC")" >"$work/debian/dists/$suite/Release"
	done
}

withdraw() { # withdraw SUITE NAME [ARCHITECTURE]
	sed -i "/^Package: $2\$/,/^\$/d" "$work/debian/dists/$1/main/binary-${3-amd64}/Packages"
}

# Publishes the written lists: puts their sums into the Release files.
publish() {
	for suite in $suites; do
		(
			cd "$work/debian/dists/$suite" || exit
			sed -i '/^SHA256:/q' Release
			for list in main/*/Packages; do
				printf ' %s %s %s\n' "$(sha256sum <"$list" | cut -d' ' -f1)" "$(stat -c %s "$list")" "$list" >>Release
			done
		)
	done
}

chosen() { [ "$(sed -n 's/^release=//p' "$RHIST_LAB/kernel")" = "$1" ]; }

lab() { scripts/lab "$@" >"$work/said" 2>&1; }
said() { grep -qF -- "$1" "$work/said"; }
not_said() { ! said "$1"; }
