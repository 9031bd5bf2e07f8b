# SPDX-License-Identifier: GPL-2.0-only
"""By this a program says which of its GPU memory need not be saved: see docs/discard.md. Python 3.8 and later."""
import mmap
import os
import struct

MAX = 65536
HEAD = struct.Struct("=8sII")
RANGE = struct.Struct("=QQ")


class Discard:
    """A table that the plugin reads when the program is stopped. A child of fork() does not have it."""

    def __init__(self):
        fd = os.memfd_create("amdgpu-discard")
        try:
            os.ftruncate(fd, HEAD.size + MAX * RANGE.size)
            self.table = mmap.mmap(fd, HEAD.size + MAX * RANGE.size)
        finally:
            os.close(fd)
        self.table.madvise(mmap.MADV_DONTFORK)
        HEAD.pack_into(self.table, 0, b"AMDGDSC1", 0, 0)

    def set(self, ranges):
        """From now on these ranges of (address, bytes), and no others. None before the memory is used again."""
        ranges = list(ranges)
        if len(ranges) > MAX:
            raise ValueError(f"{len(ranges)} ranges, {MAX} at most")
        HEAD.pack_into(self.table, 0, b"AMDGDSC1", 0, 0)
        for i, (address, length) in enumerate(ranges):
            RANGE.pack_into(self.table, HEAD.size + i * RANGE.size, address, length)
        HEAD.pack_into(self.table, 0, b"AMDGDSC1", len(ranges), 0)

    def set_tensors(self, tensors):
        """The memory of tensors of PyTorch, each of which lies in one piece."""
        self.set((tensor.data_ptr(), tensor.numel() * tensor.element_size()) for tensor in tensors)
