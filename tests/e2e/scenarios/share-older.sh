# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Before Linux 6.8: what may be shared with somebody who is not dumped is refused, and what cannot be comes back
# gpus: 1xmi100
# userland: bookworm
# drivers: kfdsim, whose interface can be chosen

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

# Linux 6.1: only what a process outside has made with its render node can be shared.
stays 'has imported a buffer' outside-object

# Linux 6.3 to 6.7: buffers of the KFD can be exported, keep their dma-buf, and nothing says whose a dma-buf is.
rules=6.12
machine_load 1xmi100
stays 'may share a buffer.*there is a dma-buf of that size' outside-import
gpujob=$top/build/workloads/gpujob
comes_back --vram 1M
