# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A Dockerfile for each stack, from the same data and with the same install lines as ``dev.py stack``."""

import shlex
from pathlib import Path

from devlib.environment import PRIVATE_UV
from devlib.stacks import ROOT, Stack, install_lines, read_stack, refusal, stack_names

FOLDER = ROOT / "docs" / "dockerfiles"
_OWN_ENVIRONMENT = "/opt/venv"


def dockerfiles() -> dict[Path, str]:
    """Return the text of every stack's Dockerfile, by path; of a refused stack there is none."""
    stacks = map(read_stack, stack_names())
    return {FOLDER / f"{stack.name}.Dockerfile": dockerfile(stack) for stack in stacks if refusal(stack) is None}


def dockerfile(stack: Stack) -> str:
    """Return one stack's Dockerfile."""
    image = stack.image
    lines = [
        "# SPDX-FileCopyrightText: 2026 The verl-hw authors",
        "# SPDX-License-Identifier: Apache-2.0",
        "#",
        f"# Written by scripts/write_vendor_docs.py from scripts/stacks/{stack.name}.json; change that file.",
        f"# {stack.about}",
        "# No image was built from it here; its install lines are those that 'dev.py stack' runs.",
        "#",
        "#   python3 scripts/dev.py build",
        f"#   docker build -f docs/dockerfiles/{stack.name}.Dockerfile -t verl-hw:{stack.name} .",
        "",
    ]
    if image.name is None:
        lines += [f"# Fill in: {image.wanted}.", f"# [{image.mark}] {image.source}", "ARG IMAGE"]
    else:
        lines += [f"# [{image.mark}] {image.source}", f"ARG IMAGE={image.name}"]
    lines += [
        "FROM ${IMAGE}",
        f"COPY --from=ghcr.io/astral-sh/uv:{PRIVATE_UV} /uv /usr/local/bin/uv",
        *_environment(stack),
        "WORKDIR /opt/verl-hw",
        "COPY dist dist",
    ]
    if image.has_torch:
        wanted = stack.version("torch")
        check = f"import torch; assert torch.__version__.split('+')[0] == '{wanted}', torch.__version__"
        lines += ["# The image's own torch, which stays: uv finds its requirement met.", f'RUN python -c "{check}"']
    lines += [f"RUN {shlex.join(line)}" for line in install_lines(stack)]
    lines.append('RUN python -c "import verl"')
    return "\n".join(lines) + "\n"


def _environment(stack: Stack) -> list[str]:
    """Lines that make the Python active into which is installed."""
    python, index = stack.image.python, stack.image.torch_index
    own = python is None
    folder = _OWN_ENVIRONMENT if own else python
    lines = [f"ENV UV_INDEX={index} UV_INDEX_STRATEGY=unsafe-best-match"] if index else []
    if folder == "system":
        return [*lines, "ENV UV_SYSTEM_PYTHON=1 UV_BREAK_SYSTEM_PACKAGES=1"]
    lines.append(f"ENV VIRTUAL_ENV={folder} PATH={folder}/bin:${{PATH}}")
    if own:
        lines.append(f"RUN uv venv --python {stack.python} {folder}")
        # For the simulator, and for what torch compiles.
        lines.insert(0, "RUN apt-get update && apt-get install -y --no-install-recommends g++ && apt-get clean")
    return lines
