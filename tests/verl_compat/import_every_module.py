# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Import every module of the installed verl in this process, in the order of their names.

Prints ``{"tried": number, "failed": {module: "Type: first line"}}`` as JSON.
"""

import importlib
import importlib.util
import json
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

# Where verl's own import ends or never returns, on any machine.
NOT_TRIED = ("__main__",)


def names() -> list[str]:
    """Every module below the package verl, without importing one."""
    spec = importlib.util.find_spec("verl")
    assert spec is not None
    assert spec.origin is not None
    root = Path(spec.origin).parent
    found = (path.relative_to(root.parent).with_suffix("") for path in root.rglob("*.py"))
    dotted = (".".join(path.parts).removesuffix(".__init__") for path in found)
    return sorted(name for name in dotted if name.rpartition(".")[2] not in NOT_TRIED)


failed = {}
tried = names()
for name in tried:
    try:
        importlib.import_module(name)
    except BaseException as error:  # noqa: BLE001 - whatever it is, is the answer
        failed[name] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
sys.stdout.write("\n" + json.dumps({"tried": len(tried), "failed": failed}) + "\n")
