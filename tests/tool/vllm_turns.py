# SPDX-License-Identifier: GPL-2.0-only
"""Two workers take turns by docs/examples/vllm, 20 times: vLLM and the command are stand-ins, the processes are real.

A worker answers its engine over pipes. The command stops and continues it by signals, as the GPU is none, and waits until
the engine has its answer: that the worker's delay is long enough is no question of this test.
"worker COMMAND..." is one of them, which has started that command (tests/e2e/scenarios/llama-turns.sh).
"""
import configparser
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import types

EXAMPLE = "docs/examples/vllm"


class SleepModeBackend:
    """What vLLM's interface has, as far as it is used."""

    def __init__(self):
        self._state = "RUNNING"

    def state(self):
        return self._state


class SleepModeBackendFactory:
    known = {}

    @classmethod
    def register_backend(cls, name, module_path, class_name):
        if name in cls.known:
            raise ValueError(name)
        cls.known[name] = (module_path, class_name)


def load():
    """The backend as vLLM loads it: by the name in the entry point."""
    for name in ("vllm", "vllm.device_allocator", "vllm.device_allocator.sleep_mode_backend"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules[name].SleepModeBackend = SleepModeBackend
    sys.modules[name].SleepModeBackendFactory = SleepModeBackendFactory
    sys.path.insert(0, EXAMPLE)
    project = configparser.ConfigParser()
    project.read(EXAMPLE + "/pyproject.toml")
    module, function = project['project.entry-points."vllm.general_plugins"']["amdgpu_suspend"].strip('"').split(":")
    for _ in range(2):
        getattr(importlib.import_module(module), function)()
    module, name = SleepModeBackendFactory.known["amdgpu"]
    return getattr(importlib.import_module(module), name)


def work():
    """A worker: one answer for each line."""
    if sys.argv[2:]:
        subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    backend = load()()
    tokens = 0
    for line in sys.stdin:
        word = line.strip()
        if word == "sleep":
            backend.suspend(2)
        elif word == "wake":
            try:
                backend.resume(["weights"])
            except RuntimeError as error:
                print(f"RuntimeError: {error}", flush=True)
                continue
        else:
            tokens += 1
        print(f"{word} {tokens} {backend.state()}", flush=True)


class Worker:
    def __init__(self, environment):
        self.directory = os.path.dirname(environment["AMDGPU_CHECKPOINT"])
        self.process = subprocess.Popen([sys.executable, __file__, "worker"], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def call(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def sleep(self):
        answer = self.call("sleep")
        with open(f"{self.directory}/answered.{self.process.pid}", "w", encoding="utf-8"):
            return answer

    def is_stopped(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"

    def wait_until_stopped(self):
        end = time.monotonic() + 60
        while not self.is_stopped() and time.monotonic() < end:
            time.sleep(0.01)
        return self.is_stopped()


def expect(condition, text):
    if not condition:
        sys.exit(f"# {text}")


def take_turns(environment):
    workers = [Worker(environment) for _ in range(2)]
    expect(workers[1].sleep() == "sleep 0 SUSPENDED", "the engine has no answer")
    expect(workers[1].wait_until_stopped(), "it is not suspended")
    for turn in range(20):
        here, away = workers[turn % 2], workers[1 - turn % 2]
        answer = here.call("token")
        expect(answer == f"token {turn // 2 + 1} RUNNING", f"turn {turn}: {answer}")
        expect(here.sleep() == f"sleep {turn // 2 + 1} SUSPENDED", "the engine has no answer")
        expect(here.wait_until_stopped(), f"turn {turn}: it is not suspended")
        os.kill(away.process.pid, signal.SIGCONT)  # amdgpu-checkpoint resume
        answer = away.call("wake")
        expect(answer.endswith("RUNNING"), f"turn {turn}: {answer}")
    return workers


def fail_once(environment, directory):
    with open(directory + "/command", "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexit 2\n")
    worker = Worker(environment)
    expect(worker.call("sleep") == "sleep 0 SUSPENDED", "the engine has no answer")
    answer = worker.call("wake")
    expect("ended with status 2" in answer, f"a suspend that fails is not told: {answer}")
    return [worker]


def main():
    signal.alarm(300)  # a worker that does not answer is no end of the suite
    with tempfile.TemporaryDirectory() as directory:
        command = directory + "/command"
        with open(command, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nuntil rm "${0%/*}/answered.$2" 2>/dev/null; do sleep 0.01; done\n'
                       '[ "$1" = suspend ] && kill -STOP "$2"\n')
        os.chmod(command, 0o755)
        environment = dict(os.environ, AMDGPU_CHECKPOINT=command, AMDGPU_SUSPEND_DELAY="0")
        for worker in take_turns(environment) + fail_once(environment, directory):
            os.kill(worker.process.pid, signal.SIGKILL)
            worker.process.wait()


if sys.argv[1:2] == ["worker"]:
    work()
else:
    main()
