# SPDX-License-Identifier: GPL-2.0-only
"""A sleep backend for vLLM: POST /sleep frees all GPU memory of a worker, that of its graphs and communicators included.

Install it with pyproject.toml, and start vLLM with --enable-sleep-mode --sleep-mode-backend amdgpu. A sleeping worker is
frozen, so another program wakes it: "amdgpu-checkpoint resume PID..." of all workers, then POST /wake_up.
The level and tags of a sleep have no meaning here: all data are restored.
"""

import os
import subprocess

from vllm.device_allocator.sleep_mode_backend import SleepModeBackend, SleepModeBackendFactory

# In seconds. The worker first answers its engine: where this is too short for that, POST /sleep waits for the resume.
DELAY = float(os.environ.get("AMDGPU_SUSPEND_DELAY", "1"))
COMMAND = os.environ.get("AMDGPU_CHECKPOINT", "amdgpu-checkpoint")


def register():
    """The entry point, which vLLM calls in each process."""
    try:
        SleepModeBackendFactory.register_backend("amdgpu", __name__, "AmdgpuSuspendBackend")
    except ValueError:
        pass  # called before


class AmdgpuSuspendBackend(SleepModeBackend):
    """Suspends the process that it is in."""

    def __init__(self):
        super().__init__()
        self._command = None

    def suspend(self, level=1):
        self._command = subprocess.Popen(
            ["sh", "-c", 'sleep "$1" && exec "$2" suspend "$3"', "sh", str(DELAY), COMMAND, str(os.getpid())],
            start_new_session=True, stdin=subprocess.DEVNULL)
        self._state = "SUSPENDED"

    def resume(self, tags=None):
        """By then the process runs again, or was not suspended yet: the answer tells which."""
        command, self._command = self._command, None
        status = command.wait() if command else 0
        self._state = "RUNNING"
        if status not in (0, 3):  # 3: less than half of the VRAM was freed
            raise RuntimeError(f"{COMMAND} suspend ended with status {status}: the worker has run all the time")

    @classmethod
    def is_supported(cls):
        return os.path.exists("/dev/kfd")

    @classmethod
    def preserves_communicators(cls):
        return True

    @classmethod
    def preserves_compiled_artifacts(cls):
        return True

    @classmethod
    def preserves_graphs_with_communicators(cls):
        return True
