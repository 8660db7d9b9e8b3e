# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Stacks: what an image holds that people train in, one file each in ``scripts/stacks``, and how it is installed.

The same lines install a stack for ``dev.py stack`` and in its Dockerfile.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from devlib.console import DevError

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "scripts" / "stacks"
TESTED_VERSIONS = ROOT / "shared" / "verl-hw-core" / "src" / "verl_hw_core" / "tested_versions.json"
# Device name in torch by vendor, as in each wheel's spec.
DEVICES = {"cambricon": "mlu", "enflame": "gcu", "intel": "xpu", "metax": "cuda"}


@dataclass(frozen=True, kw_only=True)
class Pin:
    """The version of one package in a stack.

    Attributes:
        package: Distribution, or "python".
        version: Version, of Python its release series.
        mark: C: confirmed in the source; L: likely, the source does not say it of this image.
        source: Where the version was read, or what it was inferred from.
        against: What of the stack contradicts the pin, which is then installed after the others without dependencies,
            as the vendor's guide says; None where nothing does.
    """

    package: str
    version: str
    mark: str
    source: str
    against: str | None = None


@dataclass(frozen=True, kw_only=True)
class Image:
    """The image that a stack's Dockerfile begins with.

    Attributes:
        name: Public image, or None.
        wanted: Which image to fill in, where there is no public one.
        python: Folder of the image's own environment, "system" for its system Python, None for one that uv makes.
        has_torch: Whether the vendor's torch is in it, which is then left alone.
        torch_index: Package index with the vendor's build of torch, where the image has none.
        mark: C or L, as for a pin.
        source: Where this was read.
    """

    name: str | None
    wanted: str | None
    python: str | None
    has_torch: bool
    torch_index: str | None
    mark: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Stack:
    """What one file of ``scripts/stacks`` says.

    Attributes:
        name: Name of the file.
        about: One sentence.
        vendor: Vendor whose wheel is installed.
        simulates: Vendor whose device is simulated, or None.
        not_simulated: Why none is.
        image: Image of the Dockerfile.
        pins: Versions, Python's first.
    """

    name: str
    about: str
    vendor: str
    simulates: str | None
    not_simulated: str | None
    image: Image
    pins: tuple[Pin, ...]

    def version(self, package: str) -> str | None:
        """Return the version of a package, or None where the stack does not name it."""
        return next((pin.version for pin in self.pins if pin.package == package), None)

    @property
    def python(self) -> str:
        """Python's release series."""
        return str(self.version("python"))

    @property
    def device(self) -> str:
        """What a record says that it ran on."""
        return f"simulated {DEVICES[self.simulates]}" if self.simulates else "none"

    @property
    def wheels(self) -> tuple[str, ...]:
        """Requirements on wheels of this repository."""
        simulator = ("verl-hw-sim",) if self.simulates and not self.image.has_torch else ()
        return (f"verl-hw-{self.vendor}", "verl-hw-tools[demo]", *simulator)


def stack_names() -> tuple[str, ...]:
    """Return the names of all stacks, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "results"))


def read_stack(name: str) -> Stack:
    """Return one stack.

    Raises:
        DevError: There is none of that name.
    """
    if name not in stack_names():
        raise DevError(f"no stack {name!r}; there are: {', '.join(stack_names())}")
    data = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    pins = tuple(Pin(**pin) for pin in data.pop("pins"))
    return Stack(name=name, image=Image(**data.pop("image")), pins=pins, **data)


def install_lines(stack: Stack) -> tuple[tuple[str, ...], ...]:
    """Return the commands that install a stack and our wheels; wheels are in ``dist``, Python is the active one's."""
    packages = [pin for pin in stack.pins if pin.package != "python"]
    together = [_requirement(pin) for pin in packages if pin.against is None]
    afterwards = [_requirement(pin) for pin in packages if pin.against is not None]
    lines = [("uv", "pip", "install", *together), ("uv", "pip", "install", "--find-links", "dist", *stack.wheels)]
    if afterwards:
        lines.append(("uv", "pip", "install", "--no-deps", *afterwards))
    return tuple(lines)


def _requirement(pin: Pin) -> str:
    # verl's trainer wants Ray's dashboard and job server too.
    name = "ray[default]" if pin.package == "ray" else pin.package
    return f"{name}=={pin.version}"


def refusal(stack: Stack) -> str | None:
    """Say in one line why nothing of verl-hw can run on a stack, or None."""
    for row in json.loads(TESTED_VERSIONS.read_text(encoding="utf-8"))["packages"]:
        version = stack.version(row["name"])
        if version and row["floor"] and _parts(version) < _parts(row["floor"]):
            return f"{row['name']} {version} is too old: verl-hw needs {row['name']} {row['floor']} or later"
    return None


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("+")[0].split("."))
