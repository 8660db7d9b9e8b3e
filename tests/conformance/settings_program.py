# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Run verl's engine on a simulated device under settings that need care, and write down what became of each.

Usage: ``python settings_program.py MODELS_FOLDER OUT_FOLDER``.
"""

import importlib.machinery
import json
import logging
import sys
import traceback
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from unittest import mock

import torch
from padding_program import batch_of, build, gradients
from rank_start import joined
from verl.plugin.platform import get_platform
from verl.utils import tensordict_utils as tu
from verl.utils.activation_offload import SynchronizedGroupOffloadHandler

from verl_hw_core import model_patches, upstream
from verl_hw_core.model_patches import FusedOp, add_fused_op, declarations
from verl_hw_core.training import jagged, memory
from verl_hw_sim import limits

LANGUAGE = "language_model"


class Lines(logging.Handler):
    """Messages of verl-hw."""

    def __init__(self):
        super().__init__()
        self.found = []

    def emit(self, record):
        self.found.append(record.getMessage())


@contextmanager
def lines():
    handler = Lines()
    logging.getLogger("verl_hw_core").addHandler(handler)
    try:
        yield handler.found
    finally:
        logging.getLogger("verl_hw_core").removeHandler(handler)


def refusal(models: Path, **settings) -> str:
    try:
        build(models, LANGUAGE, None, **settings)
    except Exception as error:  # noqa: BLE001 - which one it is, is the question
        return f"{type(error).__name__}: {error}"
    return ""


def kernel(attribute: str) -> FusedOp:
    return FusedOp(
        vendor="cambricon",
        operation="rms_norm",
        module="acme_kernels",
        attribute=attribute,
        adapter=lambda kernel, *args: kernel(*args),
    )


def patched(models: Path) -> dict:
    """The gradients without a kernel, with a right one and with one that has no autograd."""
    import acme_kernels

    results = {"none": {"gradients": gradients(*build(models, LANGUAGE, "eager"), LANGUAGE, packed=True)}}
    for attribute in ("good", "without_autograd"):
        declarations._fused.clear()
        acme_kernels.calls.clear()
        add_fused_op(kernel(attribute))
        with lines() as said:
            found = gradients(*build(models, LANGUAGE, "eager"), LANGUAGE, packed=True)
        results[attribute] = {
            "gradients": found,
            "applied": [record.what for record in model_patches.applied()],
            "calls": len(acme_kernels.calls),
            "lines": [line for line in said if "Model patches" in line],
        }
        model_patches.revert()
    return results


def with_liger(models: Path) -> list[str]:
    """What is applied to a model that Liger patches; a stand-in for the package, which is not installed."""
    declarations._fused.clear()
    add_fused_op(kernel("good"))
    package, transformers, patch = (ModuleType(name) for name in _LIGER)
    patch._apply_liger_kernel_to_instance = lambda **_: None
    for module in (package, transformers, patch):
        module.__spec__ = importlib.machinery.ModuleSpec(module.__name__, None)
    with mock.patch.dict(sys.modules, dict(zip(_LIGER, (package, transformers, patch), strict=True))):
        build(models, LANGUAGE, "eager", model_settings={"use_liger": True})
    found = [record.what for record in model_patches.applied()]
    declarations._fused.clear()
    return found


_LIGER = ("liger_kernel", "liger_kernel.transformers", "liger_kernel.transformers.monkey_patch")


def fused_log_probs(models: Path) -> dict:
    """Fused against plain log-probs, and what is refused. Last: verl's patch of the model's class stays."""
    options = {"use_fused_kernels": True, "fused_kernel_options": {"impl_backend": "torch"}}
    results = {}
    for name, settings in (("plain", {}), ("fused", options)):
        # FSDP1: with FSDP2 verl itself shards the head apart from the model, where its fused forms cannot read it.
        engine, _ = build(models, LANGUAGE, "sdpa", strategy="fsdp", model_settings=settings)
        batch = batch_of(LANGUAGE, packed=True)
        tu.assign_non_tensor(batch, use_fused_kernels=bool(settings))
        with engine.eval_mode():
            output = engine.infer_batch(batch, loss_function=None)["model_output"]["log_probs"]
        results[name] = [row[:-1].tolist() for row in output.unbind()]
    for backend in ("triton", "liger", None):
        settings = {"use_fused_kernels": True, "fused_kernel_options": {"impl_backend": backend}}
        results[f"refused {backend}"] = refusal(models, model_settings=settings)
    return results


def refuse(*args, **kwargs):
    raise RuntimeError("not implemented on this chip")


def without_memory_interface(models: Path) -> dict:
    """A reference model and an offloaded activation where memory cannot be asked for nor pinned."""
    module = get_platform().device_module
    empty = torch.empty

    def pageable_only(*args, pin_memory=False, **kwargs):
        return refuse() if pin_memory else empty(*args, **kwargs)

    results = {}
    with ExitStack() as stack, lines() as said:
        for name in ("mem_get_info", "memory_allocated"):
            stack.enter_context(mock.patch.object(module, name, refuse))
        stack.enter_context(mock.patch.object(torch.Tensor, "pin_memory", refuse))
        stack.enter_context(mock.patch.object(torch, "empty", pageable_only))
        for row, mend in (("memory-query", "survive_memory_queries"), ("pinned-memory", "pageable_where_pinned_fails")):
            upstream.restore(row)
            with mock.patch.object(memory, mend):
                results[f"without {row}"] = refusal(models, forward_only=True)
        engine, _ = build(models, LANGUAGE, None, forward_only=True)
        with engine.eval_mode():
            inferred = engine.infer_batch(batch_of(LANGUAGE, packed=True), loss_function=None)["model_output"]
        results["tokens"] = sum(len(row) for row in inferred["log_probs"].unbind())
        activation = torch.ones(2, device=get_platform().device_name)
        results["activation"] = SynchronizedGroupOffloadHandler.offload(activation)[1].tolist()
    results["rows"], results["lines"] = list(upstream.in_force()), said
    upstream.restore("pinned-memory")
    with mock.patch.object(module, "mem_get_info", return_value=(0, 0)):
        results["zero"] = refusal(models)
    return results


def without_jagged_operators(models: Path) -> dict:
    """Padded training where the device lacks the operators that pad a jagged tensor and take the padding out again."""
    operators = tuple(
        f"aten::{name}" for name in ("_jagged_to_padded_dense_forward", "_padded_dense_to_jagged_forward")
    )
    results = {"own": padded_gradients(models)}
    for name, denied in (("none", operators), ("forward only", operators[1:])):
        with limits.override(deny=denied):
            with mock.patch.object(jagged, "complete"):
                results[f"{name}, alone"] = outcome(padded_gradients, models)
            results[name] = padded_gradients(models)
            results[f"{name}, rows"] = list(upstream.in_force())
            upstream.restore(jagged.ROW)
    return results


def padded_gradients(models: Path) -> dict:
    """Of verl's engine, and of values that are padded as verl pads them."""
    device = get_platform().device_name
    engine = gradients(*build(models, LANGUAGE, "eager"), LANGUAGE, packed=False)
    values = torch.linspace(-1, 1, 12, device=device).view(6, 2).requires_grad_()
    rows = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 1, 1, 6], device=device))
    padded = torch.nested.to_padded_tensor(rows, 0.5, output_size=(3, 5, 2))
    (padded**3).sum().backward()
    return {"engine": engine, "padded": padded.tolist(), "values": values.grad.tolist()}


def outcome(function, *args):
    try:
        return function(*args)
    except NotImplementedError as error:
        return f"{type(error).__name__}: {error}"


def deterministic(models: Path) -> dict:
    """Two engines under full determinism, started from different random states."""
    module = get_platform().device_module
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        module.manual_seed_all(seed)
        build(models, LANGUAGE, "eager", full_determinism=True, seed=7)
        results.append([torch.rand(2).tolist(), torch.rand(2, device=get_platform().device_name).tolist()])
    enabled = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    return {"random": results, "enabled": enabled}


SCENARIOS = (
    patched,
    with_liger,
    without_memory_interface,
    without_jagged_operators,
    deterministic,
    fused_log_probs,
)


def main() -> None:
    models, out = Path(sys.argv[1]), Path(sys.argv[2])
    platform = get_platform()
    results = {}
    with joined(0, 1, out, platform.device_name, platform.communication_backend_name()):
        for scenario in SCENARIOS:
            try:
                results[scenario.__name__] = scenario(models)
            except Exception:  # noqa: BLE001 - the tests of the others go on
                results[scenario.__name__] = {"error": traceback.format_exc()}
        (out / "result.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
