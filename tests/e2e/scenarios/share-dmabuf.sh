# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Open dma-bufs: duplicates, sent, inherited, read-only, the last reference to their memory
# gpus: 1xmi100
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

comes_back_if_listed dmabuf
