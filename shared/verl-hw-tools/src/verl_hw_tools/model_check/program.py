# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m verl_hw_tools.model_check.program FOLDER``: check the model of the job in a folder, on one device."""

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from verl_hw_core.errors import VerlHwError
from verl_hw_core.load_report import describe
from verl_hw_core.megatron import architectures, loading
from verl_hw_tools.errors import ModelCheckError
from verl_hw_tools.model_check import job as job_module
from verl_hw_tools.model_check.job import Job
from verl_hw_tools.model_check.results import Report

_FORMS = ("packed", "padded")


def main(folder: Path) -> None:
    """Run the job, and leave a report or the reason why there is none."""
    try:
        report = run(Job.read(folder), folder)
    except VerlHwError as error:
        (folder / job_module.REFUSAL).write_text(str(error), encoding="utf-8")
        raise
    (folder / job_module.REPORT).write_text(json.dumps(report.as_data()), encoding="utf-8")


def run(job: Job, folder: Path) -> Report:
    """Build both models and compare them.

    Raises:
        VerlHwError: There is nothing to compare: no such model, no bridge, no Megatron.
    """
    _import_modules(job.modules)
    registered = architectures.registered()
    config = _config(job)
    loading.load_without_engine()
    _require_bridge(config)
    sizes = {} if job.full_size else _shrink(config)

    # They import megatron, which is loaded by now.
    from verl.plugin.platform import get_platform

    from verl_hw_tools.model_check import checks
    from verl_hw_tools.model_check.reference import Reference

    device = get_platform().device_name
    _open_process_group(folder)
    reference = Reference(config, folder)
    own = registered.get(config.model_type)
    build = _builder(reference, device, job.trust_remote_code)
    findings = tuple(checks.compare(reference, build, own.batches if own else _FORMS, job.tolerance))
    return Report(
        model_type=config.model_type,
        hf_class=type(reference.model).__name__,
        bridge=_bridge_name(config),
        vendor=job.vendor,
        device=device,
        simulated=job.simulated,
        sizes=sizes,
        tolerance=job.tolerance,
        findings=findings,
    )


def _import_modules(modules: tuple[str, ...]) -> None:
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception as error:
            raise ModelCheckError(f"--import {name} fails: {describe(error)}") from error


def _config(job: Job) -> Any:
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(job.model, trust_remote_code=job.trust_remote_code)
    except Exception as error:
        raise ModelCheckError(
            f"transformers cannot read the config in {job.model}: {describe(error)}. If a package of yours has the "
            "model, name the module that registers it: --import MODULE"
        ) from error
    if hasattr(config, "vision_config") or not hasattr(config, "num_hidden_layers"):
        raise ModelCheckError(
            f"{job.model} holds a {config.model_type!r}, which is no model of text alone with decoder layers: it "
            "cannot be compared"
        )
    _leave_out_mtp(config)
    return config


def _leave_out_mtp(config: Any) -> None:
    """As verl does unless MTP is asked for; transformers has no such block to compare with."""
    for name in ("num_nextn_predict_layers", "mtp_num_layers"):
        if getattr(config, name, None):
            setattr(config, name, 0)


def _shrink(config: Any) -> dict[str, tuple[Any, Any]]:
    from verl_hw_tools.model_check.tiny import make_tiny

    return make_tiny(config)


def _require_bridge(config: Any) -> None:
    from verl_hw_core.megatron import architecture_bridge

    architecture_bridge.install(config.model_type)


def _bridge_name(config: Any) -> str:
    from mbridge.core.bridge import _MODEL_REGISTRY

    return str(_MODEL_REGISTRY[config.model_type].__name__)


def _open_process_group(folder: Path) -> None:
    import torch.distributed as dist
    from megatron.core import parallel_state
    from verl.plugin.platform import get_platform

    from verl_hw_tools.model_check import candidate

    if dist.is_initialized():
        return
    platform = get_platform()
    platform.set_device(0)
    backend = f"cpu:gloo,{platform.device_name}:{platform.communication_backend_name()}"
    dist.init_process_group(backend, init_method=f"file://{folder}/rendezvous", rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    candidate.seed()


def _builder(reference: Any, device: str, trust_remote_code: bool) -> Callable[[bool], Any]:
    def build(value: bool) -> Any:
        from transformers import AutoConfig

        from verl_hw_tools.model_check.candidate import Candidate

        folder = reference.value_folder if value else reference.folder
        config = AutoConfig.from_pretrained(folder, trust_remote_code=trust_remote_code)
        return Candidate(config, device, value=value)

    return build


if __name__ == "__main__":
    main(Path(sys.argv[1]))
