#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What the vendor wheels add to ``import verl``, as a ratio of CPU time.

Every Ray worker pays for this import. Fresh processes with and without plugins take turns, so that a machine that
is busy for a while slows both alike; user and system CPU of each process come from the kernel's accounting.

    python3 scripts/dev.py run python scripts/bench_import.py --max-ratio 1.05
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

ARMS = {"without plugins": "none", "with plugins": "auto"}
CHILD = """
import sys
sys.path[:0] = sys.argv[1:]
import verl
sys.stderr.flush()
sys.stdout.write(f"{len(sys.modules)} {sum(name.startswith('verl_hw_') for name in sys.modules)}")
"""
CHILD_SECONDS = 300


@dataclass(frozen=True)
class Sample:
    """One import in one fresh process."""

    cpu_seconds: float
    wall_seconds: float
    modules: int
    our_modules: int


@dataclass(frozen=True)
class Result:
    """Both arms, and how they compare.

    Attributes:
        samples: Every measurement, by arm.
        ratio: CPU seconds with plugins divided by those without, of the statistic that was asked for.
        statistic: ``"median"``, or ``"min"``, which other load on the machine disturbs least.
    """

    samples: dict[str, list[Sample]]
    ratio: float
    statistic: str


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 when the ratio is above ``--max-ratio``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7, help="fresh processes for each arm (default: 7)")
    parser.add_argument("--statistic", choices=("median", "min"), default="median")
    parser.add_argument("--max-ratio", type=float, help="exit with status 1 above this")
    parser.add_argument(
        "--path", action="append", default=[], help="folder with further plugins, put first on sys.path in both arms"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(argv)
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")

    result = compare(measure(options.repeats, options.path), options.statistic)
    print(json.dumps(asdict(result), indent=2) if options.json else table(result))
    too_slow = options.max_ratio is not None and result.ratio > options.max_ratio
    if too_slow:
        print(f"ratio {result.ratio:.3f} is above {options.max_ratio}", file=sys.stderr)
    return 1 if too_slow else 0


def measure(repeats: int, paths: Sequence[str] = ()) -> dict[str, list[Sample]]:
    """Import ``repeats`` times in each arm, after one unmeasured round that warms caches and byte code.

    The arm that goes first changes from round to round.
    """
    samples: dict[str, list[Sample]] = {arm: [] for arm in ARMS}
    for policy in ARMS.values():
        import_once(policy, paths)
    for number in range(repeats):
        for arm in sorted(ARMS, reverse=bool(number % 2)):
            samples[arm].append(import_once(ARMS[arm], paths))
    return samples


def import_once(policy: str, paths: Sequence[str] = ()) -> Sample:
    """Run ``import verl`` in a fresh process with that plugin policy.

    Raises:
        RuntimeError: The import failed.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith(("VERL_", "PYTHON"))}
    env["VERL_USE_EXTERNAL_PLUGINS"] = policy
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.monotonic()
        process = subprocess.Popen([sys.executable, "-c", CHILD, *paths], env=env, stdout=out, stderr=err)
        status, cpu_seconds = _wait(process)
        wall = time.monotonic() - start
        out.seek(0)
        err.seek(0)
        if status != 0:
            raise RuntimeError(f"import verl failed with exit status {status}:\n{err.read()[-3000:]}")
        modules, ours = out.read().split()
    return Sample(cpu_seconds, wall, int(modules), int(ours))


def compare(samples: dict[str, list[Sample]], statistic: str) -> Result:
    """Return the ratio of both arms' CPU time."""
    pick = min if statistic == "min" else statistics.median
    without, with_ = (pick([sample.cpu_seconds for sample in samples[arm]]) for arm in ARMS)
    return Result(samples, with_ / without, statistic)


def table(result: Result) -> str:
    """Describe the result for people."""
    lines = [
        f"{'import verl':16} {'runs':>4} {'CPU median':>11} {'CPU min':>8} {'CPU max':>8} {'modules':>8} {'ours':>5}"
    ]
    for arm, samples in result.samples.items():
        cpu = [sample.cpu_seconds for sample in samples]
        lines.append(
            f"{arm:16} {len(cpu):>4} {statistics.median(cpu):>9.3f} s {min(cpu):>6.3f} s {max(cpu):>6.3f} s "
            f"{samples[-1].modules:>8} {samples[-1].our_modules:>5}"
        )
    return "\n".join([*lines, f"ratio of the {result.statistic} CPU times: {result.ratio:.3f}"])


def _wait(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Wait for the process and return its exit status and its own CPU seconds, user and system."""
    deadline = time.monotonic() + CHILD_SECONDS
    while True:
        pid, wait_status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(wait_status)
            return process.returncode, usage.ru_utime + usage.ru_stime
        if time.monotonic() > deadline:
            process.kill()
            raise RuntimeError(f"import verl took more than {CHILD_SECONDS} s")
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
