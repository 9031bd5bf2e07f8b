# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Sourced where $top is set.

# gpus_replace CHIP DIRECTORY: there, the descriptions in which each MI100 is another chip. Radeons are not joined by XGMI.
gpus_replace() {
	local file script="s/0x738c/$1/"
	[ "$1" != 0x744c ] || script+=';/^hive_id/d'
	mkdir -p "$2"
	for file in "$top/tests/asicsim/gpus"/*.txt; do
		sed "$script" "$file" >"$2/${file##*/}"
	done
}
