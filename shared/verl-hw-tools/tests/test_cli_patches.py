# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw patches``: what is, or would be, replaced in transformers' models."""

import json
import subprocess
import sys

import pytest
from machine_speed import scaled
from typer.testing import CliRunner

from verl_hw_core import model_patches
from verl_hw_core.model_patches import FusedOp, declarations, registry
from verl_hw_tools.cli.patch_rows import rows


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """Empty declarations, default mode."""
    for name in ("_fused", "_patches"):
        monkeypatch.setattr(declarations, name, {})
    monkeypatch.delenv(registry.MODE_ENV, raising=False)


def fused(attribute: str, operation: str = "rms_norm", module: str = "acme_kernels") -> FusedOp:
    return FusedOp(
        vendor="acme",
        operation=operation,
        module=module,
        attribute=attribute,
        adapter=lambda kernel, *args: kernel(*args),
    )


def test_the_listing_says_what_has_no_kernel():
    listed = rows("intel")
    assert {row.model_type for row in listed} >= {"qwen2", "qwen3_next", "qwen3_5_moe", "llama"}
    assert {row.in_force for row in listed} == {"no"}
    assert {row.kernel for row in listed} == {"no public vendor kernel with gradients"}
    norms = [row for row in rows("cambricon") if row.target.endswith("Qwen3RMSNorm.forward")]
    assert "torch_mlu_ops.fused_rms_norm is known by name only" in norms[0].kernel


def test_the_listing_says_what_is_installed(monkeypatch):
    model_patches.add_fused_op(fused("good"))
    model_patches.add_fused_op(fused("rotary", "rotary", module="acme_kernels_of_2019"))
    state = {row.kernel: row.in_force for row in rows("acme") if row.kind == "fused"}
    assert state == {
        "acme_kernels.good": "if it passes the gradient check",
        "acme_kernels_of_2019.rotary (not installed)": "no",
    }
    monkeypatch.setenv(registry.MODE_ENV, "portable")
    assert {row.kind for row in rows("acme") if row.target.endswith("Norm.forward")} == {"portable"}


def test_the_command_prints_a_table_and_json():
    from verl_hw_tools.cli.app import app

    result = CliRunner().invoke(app, ["patches", "--json"])
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["schema"] == 1
    assert {"vendor", "model_type", "target", "kind", "kernel", "in_force"} == set(data["patches"][0])
    table = CliRunner().invoke(app, ["patches", "--all"])
    assert table.exit_code == 0
    assert "model type" in table.stdout
    unknown = CliRunner().invoke(app, ["patches", "--vendor", "acme"])
    assert unknown.exit_code == 2


def test_by_default_the_command_shows_what_is_replaced(monkeypatch):
    from verl_hw_tools.cli.app import app

    nothing = CliRunner().invoke(app, ["patches", "--vendor", "intel"])
    assert nothing.stdout.startswith("intel: none of ")
    assert len(nothing.stdout.splitlines()) == 2
    assert "verl-hw patches --all" in nothing.stdout
    monkeypatch.setenv(registry.MODE_ENV, "portable")
    portable = CliRunner().invoke(app, ["patches", "--vendor", "intel"])
    assert "Qwen3RMSNorm" in portable.stdout
    assert "no operation mapped" not in portable.stdout


def test_the_command_imports_no_torch():
    code = "import sys\nfrom verl_hw_tools.cli.app import app\ntry: app(['patches'])\nexcept SystemExit: pass\n"
    code += "print('torch' in sys.modules, 'verl' in sys.modules)"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=scaled(60), check=True
    ).stdout
    assert out.splitlines()[-1] == "False False"
