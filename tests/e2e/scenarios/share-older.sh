# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Before Linux 6.8: what may be shared with somebody who is not dumped is refused
# gpus: 1xmi100
# userland: bookworm
# drivers: kfdsim, whose interface can be chosen

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

# Linux 6.1: only what a process outside has made with its render node can be shared.
stays 'has imported a buffer' outside-object

# Linux 6.3 to 6.7: buffers of the KFD can be exported, and nothing says whether they were.
rules=6.12
machine_load 1xmi100
stays 'may have exported a buffer' outside-import
