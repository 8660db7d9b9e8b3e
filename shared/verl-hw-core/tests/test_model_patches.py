# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Declaring, applying, recording and taking back model patches; the gradient check before a fused kernel is used."""

import ast
import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import logging
import sys
from pathlib import Path
from types import ModuleType

import pytest

from verl_hw_core import model_patches, upstream
from verl_hw_core.errors import ModelPatchError
from verl_hw_core.facts import vendors
from verl_hw_core.model_patches import FusedOp, ModelPatch, declarations, registry
from verl_hw_core.model_patches.targets import SITES
from verl_hw_tools.cli.patch_rows import rows

QWEN3 = "transformers.models.qwen3.modeling_qwen3"


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """Empty declarations, no patch in force, default mode."""
    for name, kind in (("_fused", dict), ("_patches", dict)):
        monkeypatch.setattr(declarations, name, kind())
    monkeypatch.setattr(vendors, "_called", set())
    monkeypatch.setattr(registry, "_said", set())
    monkeypatch.delenv(registry.MODE_ENV, raising=False)
    yield
    model_patches.revert()
    if "verl_hw_core.model_patches.gradient_check" in sys.modules:
        sys.modules["verl_hw_core.model_patches.gradient_check"].usable_form.cache_clear()


@pytest.fixture
def kernels():
    """The vendor's kernels; imported late, since they import torch."""
    import acme_kernels

    acme_kernels.calls.clear()
    return acme_kernels


def fused(attribute: str, operation: str = "rms_norm", module: str = "acme_kernels", **more) -> FusedOp:
    return FusedOp(
        vendor="acme",
        operation=operation,
        module=module,
        attribute=attribute,
        adapter=lambda kernel, *args: kernel(*args),
        **more,
    )


def own(target: str):
    """What transformers has at a target now."""
    module, _, path = target.partition(":")
    value = importlib.import_module(module)
    for name in path.split("."):
        value = getattr(value, name)
    return value


def test_nothing_is_replaced_by_default():
    assert model_patches.apply("acme", "cpu", "qwen3") == ()
    assert model_patches.applied() == ()
    assert registry.ROW not in upstream.in_force()


def test_a_right_kernel_is_used_once_proved_and_taken_back(kernels, caplog):
    import torch
    from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

    before = Qwen3RMSNorm.forward
    model_patches.add_fused_op(fused("good"))
    with caplog.at_level(logging.INFO, "verl_hw_core"):
        (record,) = model_patches.apply("acme", "cpu", "qwen3")
        checked = len(kernels.calls)
        assert model_patches.apply("acme", "cpu", "qwen3") == ()
        model_patches.apply("acme", "cpu", "llama")
    assert len(kernels.calls) == checked > 0, "the check runs once a process"
    assert [r.getMessage() for r in caplog.records] == [
        "Model patches: acme_kernels.good agrees with torch forward and backward on cpu"
    ]
    assert (record.kind, record.what, record.target) == ("fused", "acme_kernels.good", f"{QWEN3}:Qwen3RMSNorm.forward")
    assert registry.ROW in upstream.in_force()
    assert {one.model_type for one in model_patches.applied()} == {"qwen3", "llama"}
    norm = Qwen3RMSNorm(8)
    norm(torch.randn(2, 8)).sum().backward()
    assert len(kernels.calls) == checked + 1
    assert norm.weight.grad.abs().sum() > 0
    model_patches.revert()
    assert Qwen3RMSNorm.forward is before
    assert model_patches.applied() == ()


@pytest.mark.parametrize(
    ("attribute", "why"),
    [
        ("without_autograd", "has no gradient"),
        ("wrong_gradient", "has a wrong gradient for input 0"),
        ("raising", "raises RuntimeError: kernel not found for arch"),
        ("half_the_result", "computes something else"),
        ("in_place", "writes into its inputs"),
        ("no_float32", "raises RuntimeError: float32 is not supported"),
        ("lost_in_large_shapes", "computes something else"),
        ("missing", "cannot be imported"),
    ],
)
def test_a_faulty_kernel_is_not_used_and_one_line_says_why(kernels, caplog, attribute, why):
    model_patches.add_fused_op(fused(attribute))
    for _ in range(2):
        assert model_patches.apply("acme", "cpu", "qwen3") == ()
    (record,) = (record for record in caplog.records if record.name == "verl_hw_core")
    assert f"acme_kernels.{attribute} {why}" in record.getMessage()
    assert "transformers' own code is used instead" in record.getMessage()


def test_the_next_kernel_is_tried(kernels):
    model_patches.add_fused_op(fused("without_autograd"))
    model_patches.add_fused_op(fused("good"))
    (record,) = model_patches.apply("acme", "cpu", "qwen3")
    assert record.what == "acme_kernels.good"


def test_other_dtypes_than_the_kernels_are_computed_without_it(kernels):
    import torch
    from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

    model_patches.add_fused_op(fused("no_float32", dtypes=("bfloat16",)))
    assert len(model_patches.apply("acme", "cpu", "qwen3")) == 1
    assert Qwen3RMSNorm(8)(torch.randn(2, 8)).dtype == torch.float32


@pytest.mark.parametrize("operation", ["rotary", "swiglu", "multimodal_rotary"])
def test_every_operation_can_be_fused(kernels, operation):
    model_patches.add_fused_op(fused(operation, operation))
    model_type = "qwen2_5_vl" if operation == "multimodal_rotary" else "qwen3"
    expected = {site.target for site in SITES if (site.model_type, site.operation) == (model_type, operation)}
    assert {record.target for record in model_patches.apply("acme", "cpu", model_type)} == expected


def test_another_vendors_kernel_is_not_ours(kernels):
    model_patches.add_fused_op(fused("good"))
    assert model_patches.apply("other", "cpu", "qwen3") == ()


def test_portable_patches_on_request_and_off(kernels, monkeypatch):
    model_patches.add_fused_op(fused("good"))
    monkeypatch.setenv(registry.MODE_ENV, "off")
    assert model_patches.apply("acme", "cpu", "qwen3") == ()
    monkeypatch.setenv(registry.MODE_ENV, "portable")
    assert {record.kind for record in model_patches.apply("acme", "cpu", "qwen3")} == {"portable"}
    assert kernels.calls == []
    monkeypatch.setenv(registry.MODE_ENV, "fast")
    with pytest.raises(ModelPatchError, match="VERL_HW_MODEL_PATCHES='fast' must be one of auto, portable, off"):
        model_patches.apply("acme", "cpu", "qwen3")


@pytest.mark.parametrize("vendor", ["acme", "any"])
def test_a_vendors_own_patch_is_a_few_lines(vendor):
    target = f"{QWEN3}:rotate_half"
    before = own(target)
    patch = ModelPatch(vendor=vendor, model_type="qwen3", target=target, replacement=len, reason="no cat on this chip")
    model_patches.add_patch(patch)
    (record,) = model_patches.apply("acme", "cpu", "qwen3")
    assert own(target) is len
    assert (record.kind, record.what) == ("patch", "no cat on this chip")
    assert [row.in_force for row in rows("acme") if row.target == target] == ["yes"]
    model_patches.revert()
    assert own(target) is before


def test_the_vendors_patch_wins_over_one_for_any():
    for vendor, replacement in (("any", len), ("acme", min)):
        model_patches.add_patch(
            ModelPatch(
                vendor=vendor, model_type="qwen3", target=f"{QWEN3}:rotate_half", replacement=replacement, reason=""
            )
        )
    model_patches.apply("acme", "cpu", "qwen3")
    assert own(f"{QWEN3}:rotate_half") is min


def test_a_patch_whose_target_moved_is_an_error_that_names_it():
    model_patches.add_patch(
        ModelPatch(vendor="any", model_type="qwen3", target=f"{QWEN3}:Gone.forward", replacement=len, reason="")
    )
    with pytest.raises(ModelPatchError, match=r"no transformers.models.qwen3.modeling_qwen3:Gone.forward"):
        model_patches.apply("acme", "cpu", "qwen3")


@pytest.mark.parametrize("wrong", ["no_colon", ":name", "module:"])
def test_wrong_declarations_are_refused(wrong):
    with pytest.raises(ModelPatchError, match=r"module:attribute\.path"):
        ModelPatch(vendor="any", model_type="qwen3", target=wrong, replacement=len, reason="")
    with pytest.raises(ModelPatchError, match="operation='softmax' must be one of"):
        fused("good", operation="softmax")


def test_an_entry_point_of_another_package_adds_and_a_broken_one_is_left_out(monkeypatch, caplog):
    package = ModuleType("acme_patches")
    patch = ModelPatch(vendor="any", model_type="qwen3", target=f"{QWEN3}:rotate_half", replacement=len, reason="")
    package.add = lambda: model_patches.add_patch(patch)
    monkeypatch.setitem(sys.modules, "acme_patches", package)
    points = [
        importlib.metadata.EntryPoint(name, value, model_patches.ENTRY_POINTS)
        for name, value in (("broken", "acme_patches:gone"), ("acme", "acme_patches:add"))
    ]
    monkeypatch.setattr(vendors, "entry_points", lambda group: points)
    assert len(model_patches.apply("acme", "cpu", "qwen3")) == 1
    model_patches.apply("acme", "cpu", "llama")
    (record,) = (record for record in caplog.records if record.name == "verl_hw_core")
    assert "entry point 'broken' (acme_patches:gone) are left out" in record.getMessage()


def test_the_ascend_model_types_are_verls():
    """Read, not imported: the module needs torch_npu."""
    import verl_hw_core.model_patches.targets as targets

    package = Path(importlib.util.find_spec("verl").origin).parent
    tree = ast.parse((package / "models" / "transformers" / "npu_patch.py").read_text())
    (table,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "NPU_PATCHES"
    )
    assert sorted(ast.literal_eval(key) for key in table.keys) == sorted(targets.ASCEND_MODEL_TYPES)


def test_every_target_exists():
    for site in SITES:
        assert own(site.target), site
