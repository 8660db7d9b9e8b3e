# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Running the engines' cases and their reference in processes of their own, and reading what they wrote."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from machine_speed import scaled
from megatron_cases import Case
from platformkit import clean_environment

from verl_hw_sim import simulated_environment

HERE = Path(__file__).parent
DEADLINE_S = 900


def python(program: str, *arguments: object, log: Path, **environment: str) -> subprocess.CompletedProcess:
    with log.open("w") as stream:
        return subprocess.run(
            [sys.executable, "-W", "ignore", str(HERE / program), *map(str, arguments)],
            env=clean_environment(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", PYTHONPATH=str(HERE), **environment),
            stdout=stream,
            stderr=subprocess.STDOUT,
            timeout=scaled(DEADLINE_S),
            check=False,
        )


def write_reference(folder: Path, cases: Sequence[Case]) -> Path:
    """Write the models, and what transformers alone computes of these cases; return the folder."""
    done = python("megatron_cases.py", folder, *(case.name for case in cases), log=folder / "log.txt")
    assert done.returncode == 0, (folder / "log.txt").read_text()[-3000:]
    return folder


def run_cases(vendor: str, models: Path, out: Path, cases: list[Case], **environment: str) -> dict[str, list[dict]]:
    """Run cases in one program and return what each rank wrote, by case."""
    out.mkdir()
    done = python(
        "megatron_program.py", models, out, *(case.name for case in cases),
        log=out / "log.txt", **simulated_environment(vendor, 4), **environment,
    )  # fmt: skip
    errors = "".join(path.read_text() for path in sorted(out.glob("error-*.txt")))
    assert done.returncode == 0, errors or (out / "log.txt").read_text()[-3000:]
    return {
        case.name: [json.loads((out / f"result-{case.name}-{rank}.json").read_text()) for rank in range(case.ranks)]
        for case in cases
    }


def reporting(ranks: list[dict]) -> dict:
    """The ranks with outputs agree; return the first of them."""
    having = [rank for rank in ranks if rank["steps"][0] is not None]
    assert having
    assert all(rank["steps"] == having[0]["steps"] for rank in having)
    return having[0]
