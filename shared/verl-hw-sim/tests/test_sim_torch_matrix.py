# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The native half compiles and works on neighbours of the locked torch. Downloads several GB: marked slow."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
# Below 2.13 autograd's grad_fn returns a shared_ptr, which the native half must follow.
TORCH_VERSIONS = ("2.12.0", "2.14.1")
VENDORS = ("cambricon", "intel")
SUITES = {"mask_checks": 1, "vendor_checks": 1, "device_checks": 1, "limit_checks": 1, "collective_checks": 2}


def _environment_with(torch_version, folder):
    """A virtual environment with this torch; skips where the index does not give it."""
    uv = shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    if uv is None:
        pytest.skip("uv is not on PATH")
    python = folder / "bin" / "python"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    subprocess.run([uv, "venv", "--quiet", "--python", version, str(folder)], check=True)
    install = subprocess.run(
        [uv, "pip", "install", "--quiet", "--python", str(python), f"torch=={torch_version}", "numpy", str(PACKAGE)],
        capture_output=True,
        text=True,
        check=False,
    )
    if install.returncode != 0:
        pytest.skip(f"cannot install torch {torch_version}: {install.stderr.strip()[-300:]}")
    return python


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("torch_version", TORCH_VERSIONS)
def test_torch_matrix(torch_version, tmp_path, simulate):
    # An environment made before saves the download.
    made = os.environ.get(f"VERL_HW_TEST_PYTHON_TORCH_{torch_version.replace('.', '_')}")
    program = made or str(_environment_with(torch_version, tmp_path / "venv"))
    for vendor in VENDORS:
        assert simulate(vendor, SUITES, program=program).all_failures() == []
