# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Many first imports of verl for the price of one.

Nearly all of what ``import verl`` costs are torch, transformers and Ray. A parent process imports those, but neither
verl nor a wheel of ours, and forks for each case, which then imports verl for the first time in its life.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from machine_speed import scaled
from wheelkit import SURVEY, Answer, clean_env

# What verl and verl.workers.engine import of others; one that a later stack lacks only costs time.
STACK = (
    "torch", "tensordict", "transformers.modeling_utils", "transformers.processing_utils", "ray", "pandas",
    "torch.distributed.fsdp", "torch.distributed.checkpoint", "torch.distributed.tensor.parallel", "hydra", "peft",
    "datasets", "torchdata.stateful_dataloader", "codetiming", "PIL", "aiohttp",
)  # fmt: skip
CASE_SECONDS = 120

# Serves one case a line; the forked child leaves the loop, so that what a case raises ends it as it would a script.
PARENT = f"""
import gc, importlib, json, os, sys, time
for name in {STACK!r}:
    try:
        importlib.import_module(name)
    except ImportError:
        pass
early = sorted(name for name in sys.modules if name.split(".")[0] in ("verl", "verl_hw_core"))
print(json.dumps(early), flush=True)
code = ""
gc.collect()
gc.freeze()
for line in sys.stdin:
    case = json.loads(line)
    pid = os.fork()
    if pid == 0:
        for descriptor, path in ((0, os.devnull), (1, case["out"]), (2, case["err"])):
            opened = os.open(path, os.O_RDWR)
            os.dup2(opened, descriptor)
            os.close(opened)
        os.environ.update(case["env"])
        sys.path[:0] = case["first"]
        sys.path += case["last"]
        code = case["code"]
        break
    deadline = time.monotonic() + {scaled(CASE_SECONDS)}
    while (done := os.waitpid(pid, os.WNOHANG))[0] == 0:
        if time.monotonic() > deadline:
            os.kill(pid, 9)
        time.sleep(0.005)
    print(os.waitstatus_to_exitcode(done[1]), flush=True)
if code:
    exec(compile(code, "<case>", "exec"), {{"__name__": "__main__"}})
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # taking the parent's modules apart would take longer than the case
"""


class Forks:
    """A warm parent process; each call of :meth:`run` is a fork of it.

    Args:
        env: Environment variables of the parent, for what is read when Python starts.
    """

    def __init__(self, **env: str) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in __exit__
        self._parent = subprocess.Popen(
            [sys.executable, "-c", PARENT],
            env=clean_env(**env),
            cwd=tempfile.gettempdir(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> "Forks":
        assert json.loads(self._said()) == [], "the parent process has imported verl: no case would be a first import"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._parent.stdin is not None
        self._parent.stdin.close()
        try:
            self._parent.wait(timeout=scaled(CASE_SECONDS))
        except subprocess.TimeoutExpired:
            self._parent.kill()
            self._parent.wait()
        self._log.close()

    def run(
        self,
        script: str,
        *,
        first: Sequence[Path] = (),
        last: Sequence[Path] = (),
        env: Mapping[str, str] | None = None,
        status: int = 0,
    ) -> Answer:
        """Run a script after :data:`wheelkit.SURVEY` in a fork and return what it answered and printed.

        Args:
            script: The child's code.
            first: Folders put before everything on ``sys.path``, so that their plugins load before ours.
            last: Folders put after everything, so that their plugins load after ours.
            env: Further environment variables.
            status: The exit status to expect; another one fails the test.
        """
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            out.touch()
            err.touch()
            case = {
                "code": SURVEY + script,
                "env": dict(env or {}),
                "first": [os.fspath(one) for one in first],
                "last": [os.fspath(one) for one in last],
                "out": str(out),
                "err": str(err),
            }
            assert self._parent.stdin is not None
            self._parent.stdin.write(json.dumps(case) + "\n")
            self._parent.stdin.flush()
            found = int(self._said())
            answer = Answer.of(out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))
        assert found == status, f"exit status {found}\n{answer.stderr}"
        return answer

    def _said(self) -> str:
        assert self._parent.stdout is not None
        line = self._parent.stdout.readline()
        if not line:
            self._log.seek(0)
            raise AssertionError(f"the parent process has ended:\n{self._log.read()[-3000:]}")
        return line
