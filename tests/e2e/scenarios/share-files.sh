# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Render files besides that of KFD, of one process and of two, and processes without /dev/kfd
# gpus: 2xmi100
# tier: all
# seconds: 900

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

comes_back render-empty
comes_back_if_listed files
# Which file is the KFD's shows in its sync objects and, in the driver before Linux 7, in its pasid.
comes_back files-spare
kernel_lists || comes_back files-bare
comes_back_if_listed files-forked
stays 'mapping at .* of renderD.*: the process has no /dev/kfd open' map-forked
# Without /dev/kfd: alone, two that share, and two that share with a process that has it.
comes_back_if_listed render
comes_back_if_listed render-pair
comes_back_if_listed render-kfd

if kernel_lists; then
	stays 'renderD.* open and not /dev/kfd, and the file is in use: 1 contexts' render-ctx
	stays 'in which pid .*, with a higher pid, has its address space' render-lent
	stays 'renderD.* is not open for reading and writing .flags 0' render-readonly

	# Dumped a second time, after a restore.
	job_start render-kfd
	goes_twice
	shown 'render-kfd, twice'
fi
