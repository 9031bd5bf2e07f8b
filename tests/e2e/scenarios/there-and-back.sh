# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Moved to other GPUs, from these to others again, and from those back to the first
# gpus: 2xmi100
# kernels: each

# ids_and_minors: what must differ from one machine to the next
ids_and_minors() {
	machine_gpus | awk '{ print "id", $1; print "minor", $2 }' | sort
}

job_start
first=$(ids_and_minors)
third='s/^pci = .*/pci = 0000:21:00.0 + 3/; s/^name/card_minor = 7 + 1\ndrm_render_minor = 151 + 9\n&/'
for machine in '2xmi100-b' "2xmi100 $third" '2xmi100'; do
	before=$(ids_and_minors)
	read -r name script <<<"$machine"
	job_returns machine_load "$name" "$script"
	for other in "$before" "$first"; do
		[ "$machine" = 2xmi100 ] || [ -z "$(comm -12 <(echo "$other") <(ids_and_minors))" ] ||
			fail "the machine $machine has ids or minors of an earlier one"
	done
done
job_end
