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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType
from typing import Any

from boxlib import image
from boxlib.image import BoxError
from boxlib.record import MEASURED, NOT_RUN, SIMULATED, Record, Step, table
from boxlib.running import BUDGET_SECONDS, PARTS, Job, Part, run_parts

BOX = Path(__file__).resolve().parent
RESULTS, LOG, CHECKS = "results.json", "log.txt", "check.json"
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
    run = _Run(output, budget, work)
    run.prepare()
    run.look()
    interrupted = False
    for part in parts:
        print(f"... {part.module}: {'; '.join(part.steps.values())}", flush=True)
        try:
            run.part(part)
        except KeyboardInterrupt:
            interrupted = True
            break
    done = {step.name for step in run.steps}
    for part in PARTS:
        reason = "interrupted" if part in parts else "not asked for"
        rest = [(name, title) for name, title in part.steps.items() if name not in done]
        run.steps += [Step(name=name, title=title, outcome=NOT_RUN, reason=reason) for name, title in rest]
    record = run.write()
    print(f"\n{table(record.steps)}\n")
    print(f"{record.device}, {record.devices} visible, {record.kind}; {record.seconds:.0f} s")
    if record.kind == SIMULATED:
        print("The device was simulated: this says nothing about the vendor's hardware.")
    print(f"Results: {output / RESULTS}")
    return _INTERRUPTED if interrupted else 0 if record.passed else 1


class _Run:
    """One run: what it knows and what it has found."""

    def __init__(self, output: Path, budget: float, work: Path) -> None:
        self._began, self._budget = time.monotonic(), budget
        self._started = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self._output, self._work = output.absolute(), work
        self._manifest = image.read_manifest(BOX)
        self._versions: dict[str, str] = {}
        self._target: Any = None
        self._names: tuple[str, ...] = ()
        self.steps: list[Step] = []

    def prepare(self) -> None:
        """Put what the image lacks on the path, of this process and of its children.

        Raises:
            BoxError: The image is not one for this box, or the folder for the results cannot be written.
        """
        manifest, found = self._manifest, image.installed()
        print(f"Box of verl-hw {manifest.revision} for {manifest.vendor}, at most {self._budget:.0f} s", flush=True)
        for remark in image.require_image(manifest, found):
            print(f"note: {remark}")
        if os.environ.get("VERL_HW_SIM") and not manifest.simulator:
            raise BoxError("VERL_HW_SIM asks for a simulated device, and this box was built without --with-simulator")
        try:
            self._output.mkdir(parents=True, exist_ok=True)
            for name in (RESULTS, LOG, CHECKS):
                (self._output / name).unlink(missing_ok=True)
        except OSError as error:
            raise BoxError(f"cannot write into {self._output} ({error.strerror}): choose another --output") from error
        taken = image.chosen(manifest, found)
        site = self._work / "site"
        site.mkdir()
        image.unpack(BOX, manifest, {one.name for one in taken}, site)
        print(f"{len(taken)} of {len(manifest.carried)} packages are taken from the box, the others from the image")
        replaced = [f"{one.name} {one.version} (it has {found[one.name]})" for one in taken if one.name in found]
        if replaced:
            print(f"In place of the image's own, for this run alone: {', '.join(replaced)}", flush=True)
        path = [str(site), str(BOX), str(BOX / "boxlib" / "copies")]
        os.environ["PYTHONPATH"] = os.pathsep.join([*path, *filter(None, [os.environ.get("PYTHONPATH")])])
        sys.path[:0] = path
        self._versions = found | {one.name: one.version for one in taken}

    def look(self) -> None:
        """See which devices there are.

        Raises:
            BoxError: None, or the vendor's torch stack does not start.
        """
        from verl_hw_core.errors import VerlHwError
        from verl_hw_tools.conformance.machine import choose_target
        from verl_hw_tools.conformance.survey import Survey

        result, log = self._work / "devices.json", self._work / "devices.txt"
        module = "verl_hw_tools.conformance.survey_process"
        try:
            self._target = choose_target(self._manifest.vendor)
            spec = self._target.spec
            self._launch([sys.executable, "-m", module, spec.key, str(result)], self._work, log, lambda: 0, self._left)
        except VerlHwError as error:
            raise BoxError(str(error)) from error
        if not result.exists():
            said = log.read_text(encoding="utf-8", errors="replace")[-3000:]
            raise BoxError(f"the torch stack of {spec.display_name} does not start here:\n{said}")
        self._names = Survey.read(result).device_names
        if not self._names:
            raise BoxError(
                f"torch.{spec.device_name} sees no device: check {spec.visible_devices_envvar} and the driver"
            )
        print(f"{len(self._names)} x {self._names[0]} (torch.{spec.device_name})", flush=True)

    @property
    def _left(self) -> float:
        """Seconds until the run must be over."""
        return self._began + self._budget - time.monotonic()

    def part(self, part: Part) -> None:
        """Run a part, say how it went, and write all that is known so far."""

        def launch(command: Sequence[str], folder: Path, log: Path, watch: Callable[[], object]) -> int:
            # The part's own deadline comes first.
            return self._launch(command, folder, log, watch, self._left + 60)

        for _, steps, log in run_parts([part], self._job, self._work, self._began + self._budget, launch):
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

    def _launch(
        self, command: Sequence[str], folder: Path, log: Path, watch: Callable[[], object], seconds: float
    ) -> int:
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
            stretch=max(1.0, self._budget / BUDGET_SECONDS),
        )

    def _without_names(self, step: Step) -> Step:
        return Step(**{**vars(step), "reason": self._redacted(step.reason)})

    def _redacted(self, text: str) -> str:
        """Leave out what is this machine's alone: people send the files."""
        from verl_hw_tools.doctor.redaction import Redactor

        return Redactor().text(text.replace(str(self._work), "<work>").replace(str(BOX), "<box>"))

    def _keep(self, part: Part, log: Path) -> None:
        if log.exists():
            text = log.read_text(encoding="utf-8", errors="replace")[-_LARGEST_LOG:]
            with (self._output / LOG).open("a", encoding="utf-8") as kept:
                kept.write(f"===== {part.module}\n{self._redacted(text)}\n")
        if (log.parent / CHECKS).exists():
            shutil.copyfile(log.parent / CHECKS, self._output / CHECKS)


if __name__ == "__main__":
    sys.exit(main())
