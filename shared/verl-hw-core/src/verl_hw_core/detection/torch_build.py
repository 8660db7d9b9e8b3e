# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Probes: is the installed torch this vendor's build, and has the vendor's extension announced its device in it?"""

import ast
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path

from verl_hw_core.detection.evidence import Evidence, Verdict
from verl_hw_core.detection.lookup import look_up
from verl_hw_core.facts.hardware import Traces

_MAX_VERSION_FILE_BYTES = 64 * 1024


@dataclass(frozen=True)
class TorchFacts:
    """A torch build.

    Attributes:
        version: Its version.
        source: Where that is from, for people.
        attributes: The constants of its ``version.py``.
    """

    version: str
    source: str
    attributes: Mapping[str, object] = field(default_factory=dict)


def torch_build(traces: Traces) -> Evidence | None:
    """Looks for the marks that a vendor leaves in its own torch build; None when the spec names none.

    torch is never imported: when it already is, its attributes are read, otherwise the text of its
    ``version.py``. The mere namespace ``torch.xpu`` or ``torch.cuda`` is in every stock torch and counts for nothing.
    """
    tag, attribute = traces.torch_version_tag, traces.torch_version_attribute
    if tag is None and attribute is None:
        return None
    facts = _from_imported_torch(attribute) or installed_build()
    if facts is None:
        found = look_up("torch")
        if found.spec is None and not found.problems:
            return Evidence("torch_build", Verdict.ABSENT, "torch is not installed")
        reason = "; ".join(found.problems) or "its version.py cannot be read"
        return Evidence("torch_build", Verdict.UNKNOWN, f"torch's build cannot be told: {reason}")
    mark = _mark(facts, tag, attribute)
    if mark is not None:
        return Evidence("torch_build", Verdict.PRESENT, mark)
    wanted = " or ".join(
        part for part in (tag and f"{tag!r} in its version", attribute and f"torch.version.{attribute}") if part
    )
    return Evidence("torch_build", Verdict.ABSENT, f"torch {facts.version} ({facts.source}) lacks {wanted}")


def runtime(device_name: str) -> Evidence | None:
    """Looks whether an already imported torch carries the vendor's own device; None when it does not.

    A renamed PrivateUse1 device exists only after a vendor's extension was loaded. The opposite says nothing (the
    extension may be loaded later), so there is no "absent".
    """
    name_of_device = getattr(_imported_names().get("_C"), "_get_privateuse1_backend_name", None)
    if name_of_device is None or name_of_device() != device_name:
        return None
    return Evidence("runtime", Verdict.PRESENT, f"the imported torch has the extension device {device_name!r}")


def _mark(facts: TorchFacts, tag: str | None, attribute: str | None) -> str | None:
    if tag is not None:
        if tag.lower() in facts.version.lower():
            return f"torch {facts.version} ({facts.source}) is a {tag!r} build"
        # A local part such as "+cpu" is the running build's own word; old metadata does not overrule it.
        installed = None if "+" in facts.version else _distribution_version()
        if installed is not None and tag.lower() in installed.lower():
            return f"the installed distribution is torch {installed}, a {tag!r} build"
    if attribute is not None and facts.attributes.get(attribute):
        return f"torch.version.{attribute} is {facts.attributes[attribute]!r} ({facts.source})"
    return None


def _imported_names() -> Mapping[str, object]:
    # The dictionary instead of getattr(): torch's module-level __getattr__ may import on access.
    return getattr(sys.modules.get("torch"), "__dict__", {})


def _from_imported_torch(attribute: str | None) -> TorchFacts | None:
    names = _imported_names()
    version = names.get("__version__")
    if not isinstance(version, str):
        return None
    attributes = dict(getattr(names.get("version"), "__dict__", {}))
    if attribute is not None and not attributes.get(attribute) and _is_compiled(names.get(attribute)):
        attributes[attribute] = "compiled in"
    return TorchFacts(str(version), "imported", attributes)


def _is_compiled(namespace: object) -> bool:
    # Reads a constant of the build in torch; starts no runtime.
    ask = getattr(namespace, "_is_compiled", None)
    return bool(ask()) if callable(ask) else False


def installed_build() -> TorchFacts | None:
    """Read the installed torch's build from its files; None when there is none, or none that can be read."""
    spec = look_up("torch").spec
    if spec is None:
        return None
    attributes = _read_version_file(spec)
    version = attributes.get("__version__") or _distribution_version()
    if not isinstance(version, str):
        return None
    return TorchFacts(version, "installed, not imported", attributes)


def _read_version_file(spec: ModuleSpec) -> dict[str, object]:
    for folder in spec.submodule_search_locations or ():
        try:
            with (Path(folder) / "version.py").open("rb") as file:
                tree = ast.parse(file.read(_MAX_VERSION_FILE_BYTES))
        except (OSError, SyntaxError, ValueError):
            continue  # the caller reports a version that cannot be read as unknown
        return _constants(tree)
    return {}


def _constants(tree: ast.Module) -> dict[str, object]:
    constants: dict[str, object] = {}
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
            constants[target.id] = value.value
    return constants


def _distribution_version() -> str | None:
    from importlib import metadata  # costs 10 ms and is seldom needed

    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None
