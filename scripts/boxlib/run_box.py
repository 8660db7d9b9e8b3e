#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Run verl on the device of this machine, from this box, without a network, and write down what passed.

    python3 run_box.py

Needs the image's own Python with torch, numpy and transformers; what else verl needs is in the box, and is unpacked
into a temporary folder. Nothing of the image is changed. Exit code 0: something passed and nothing failed; 1: a step
failed; 2: the box cannot run here.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType
from typing import Any

from boxlib import image
from boxlib.image import BoxError, Manifest
from boxlib.record import MEASURED, NOT_RUN, SIMULATED, Record, Step, table
from boxlib.running import BUDGET_SECONDS, PARTS, Job, Part, run_parts

BOX = Path(__file__).resolve().parent
RESULTS, LOG, CHECKS = "results.json", "log.txt", "check.json"
_LOOK_SECONDS = 300.0
_LARGEST_LOG = 400_000
_CANNOT_RUN, _INTERRUPTED = 2, 130
_NAMED = ("torch", "transformers", "numpy", "verl", "ray", "tensordict")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the box.

    Returns:
        The exit code.
    """
    names = [part.module for part in PARTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("box-results"), metavar="DIR", help="for the results")
    parser.add_argument("--budget", type=float, default=BUDGET_SECONDS, metavar="S", help="seconds that all may take")
    parser.add_argument("--only", action="append", choices=names, help="only this part; may be repeated")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, _interrupt)
    parts = [part for part in PARTS if not options.only or part.module in options.only]
    try:
        with _work_folder() as work:
            return _run(parts, options.output, options.budget, work)
    except BoxError as error:
        print(f"run_box: {error}", file=sys.stderr)
        return _CANNOT_RUN
    except KeyboardInterrupt:
        print("run_box: interrupted", file=sys.stderr)
        return _INTERRUPTED


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _work_folder() -> Iterator[Path]:
    work = Path(tempfile.mkdtemp(prefix="verl-hw-box-"))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run(parts: Sequence[Part], output: Path, budget: float, work: Path) -> int:
    began = time.monotonic()
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    manifest = image.read_manifest(BOX)
    print(f"Box of verl-hw {manifest.revision} for {manifest.vendor}, at most {budget:.0f} s", flush=True)
    versions = _prepare_packages(manifest, work / "site")
    run = _Run(manifest, versions, started, began, budget, output, work)
    run.look()
    interrupted = ""
    for part in parts:
        print(f"... {part.module}: {'; '.join(part.steps.values())}", flush=True)
        try:
            run.part(part, began + budget)
        except KeyboardInterrupt:
            interrupted = "interrupted"
            break
    done = {step.name for step in run.steps}
    for part in PARTS:
        reason = interrupted if part in parts else "not asked for"
        run.steps += [
            Step(name=name, title=title, outcome=NOT_RUN, reason=reason or "interrupted")
            for name, title in part.steps.items()
            if name not in done
        ]
    record = run.write()
    print(f"\n{table(record.steps)}\n")
    print(f"{record.device}, {record.devices} visible, {record.kind}; {record.seconds:.0f} s")
    if record.kind == SIMULATED:
        print("The device was simulated: this says nothing about the vendor's hardware.")
    print(f"Results: {output / RESULTS}")
    return _INTERRUPTED if interrupted else 0 if record.passed else 1


def _prepare_packages(manifest: Manifest, site: Path) -> dict[str, str]:
    """Put what the image lacks on the path, of this process and of its children; return the versions that count."""
    found = image.installed()
    for remark in image.require_image(manifest, found):
        print(f"note: {remark}")
    if os.environ.get("VERL_HW_SIM") and not manifest.simulator:
        raise BoxError("VERL_HW_SIM asks for a simulated device, and this box was built without --with-simulator")
    taken = image.chosen(manifest, found)
    site.mkdir()
    image.unpack(BOX, manifest, {one.name for one in taken}, site)
    replaced = [f"{one.name} {one.version} (the image has {found[one.name]})" for one in taken if one.name in found]
    print(f"{len(taken)} of {len(manifest.carried)} packages are taken from the box; the others are the image's own")
    if replaced:
        print(f"Of the box, for this run alone, in place of the image's: {', '.join(replaced)}", flush=True)
    path = [str(site), str(BOX), str(BOX / "boxlib" / "copies")]
    os.environ["PYTHONPATH"] = os.pathsep.join([*path, *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.path[:0] = path
    return found | {one.name: one.version for one in taken}


class _Run:
    """One run: what it knows and what it has found."""

    def __init__(
        self,
        manifest: Manifest,
        versions: dict[str, str],
        started: str,
        began: float,
        budget: float,
        output: Path,
        work: Path,
    ) -> None:
        from verl_hw_core.errors import VerlHwError
        from verl_hw_tools.conformance.machine import choose_target
        from verl_hw_tools.doctor.redaction import Redactor

        try:
            self._target = choose_target(manifest.vendor)
        except VerlHwError as error:
            raise BoxError(str(error)) from error
        self._redact = Redactor().text
        self._manifest, self._versions, self._started, self._began = manifest, versions, started, began
        self._output, self._work = output.absolute(), work
        self._stretch = max(1.0, budget / BUDGET_SECONDS)
        self._names: tuple[str, ...] = ()
        self.steps: list[Step] = []
        self._output.mkdir(parents=True, exist_ok=True)
        for name in (RESULTS, LOG, CHECKS):
            (self._output / name).unlink(missing_ok=True)

    def look(self) -> None:
        """See which devices there are.

        Raises:
            BoxError: None, or the vendor's torch stack does not start.
        """
        from verl_hw_tools.conformance.survey import Survey

        result, log = self._work / "devices.json", self._work / "devices.txt"
        command = [sys.executable, "-m", "verl_hw_tools.conformance.survey_process", self._target.spec.key, str(result)]
        self._launch(command, self._work, log, lambda: 0, _LOOK_SECONDS)
        if not result.exists():
            said = log.read_text(encoding="utf-8", errors="replace")[-3000:]
            raise BoxError(f"the torch stack of {self._target.spec.display_name} does not start here:\n{said}")
        self._names = Survey.read(result).device_names
        if not self._names:
            raise BoxError(
                f"torch.{self._target.spec.device_name} sees no device: check "
                f"{self._target.spec.visible_devices_envvar} and the driver"
            )
        print(f"{len(self._names)} x {self._names[0]} (torch.{self._target.spec.device_name})", flush=True)

    def part(self, part: Part, end: float) -> None:
        """Run a part, say how it went, and write all that is known so far."""

        def launch(command: Sequence[str], folder: Path, log: Path, watch: Any) -> int:
            return self._launch(command, folder, log, watch, end - time.monotonic() + 60)

        for _, steps, log in run_parts([part], self._job, self._work, end, launch):
            self.steps += [self._without_names(step) for step in steps]
            self._keep(part, log)
        for step in self.steps[-len(part.steps) :]:
            print(f"    {step.name}: {step.outcome}, {step.seconds:.0f} s. {step.reason}", flush=True)
        self.write()

    def write(self) -> Record:
        """Write the results as far as they are known, and return them."""
        from verl_hw_core.detection import Verdict, survey

        spec = self._target.spec
        own = survey([spec], thorough=True).findings[spec.key].verdict is Verdict.PRESENT
        named = (*_NAMED, *(one.name for one in self._manifest.carried if one.ours))
        record = Record(
            vendor=spec.key,
            device=self._names[0],
            device_type=spec.device_name,
            devices=len(self._names),
            vendors_own=own,
            kind=SIMULATED if self._target.simulated else MEASURED,
            date=self._started,
            revision=self._manifest.revision,
            versions={"python": self._manifest.python} | {n: self._versions[n] for n in named if n in self._versions},
            seconds=round(time.monotonic() - self._began, 1),
            steps=tuple(self.steps),
        )
        record.write(self._output / RESULTS)
        return record

    def _launch(self, command: Sequence[str], folder: Path, log: Path, watch: Any, seconds: float) -> int:
        from verl_hw_core.processes import run_launcher

        return run_launcher(
            command, environment=self._target.environment, folder=folder, log=log, watch=watch, stall_seconds=seconds
        )

    def _job(self, folder: Path) -> Job:
        return Job(
            vendor=self._target.spec.key,
            device_type=self._target.spec.device_name,
            devices=len(self._names),
            simulated=self._target.simulated is not None,
            folder=str(folder),
            stretch=self._stretch,
        )

    def _without_names(self, step: Step) -> Step:
        """Leave out what is this machine's alone: people send the file."""
        reason = self._redact(step.reason.replace(str(self._work), "<work>").replace(str(BOX), "<box>"))
        return Step(**{**vars(step), "reason": reason})

    def _keep(self, part: Part, log: Path) -> None:
        if log.exists():
            text = log.read_text(encoding="utf-8", errors="replace")[-_LARGEST_LOG:]
            with (self._output / LOG).open("a", encoding="utf-8") as kept:
                kept.write(f"===== {part.module}\n{self._redact(text)}\n")
        if (log.parent / CHECKS).exists():
            shutil.copyfile(log.parent / CHECKS, self._output / CHECKS)


if __name__ == "__main__":
    sys.exit(main())
