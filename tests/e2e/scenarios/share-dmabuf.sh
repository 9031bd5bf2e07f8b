# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Open dma-bufs: duplicates, sent, inherited, read-only, the last reference to their memory
# gpus: 1xmi100
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

comes_back_if_listed dmabuf
# With lower numbers than the file that brings the state back.
comes_back early
comes_back early-pair
! kernel_lists || comes_back render-early
comes_back dmabuf-lone
if kernel_lists; then
	comes_back dmabuf-lone-coherent
else
	stays 'memory that the kernel cannot recreate' dmabuf-lone-coherent
fi
