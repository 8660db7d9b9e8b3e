# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which of verl's triton kernels and fused log-prob backends can run on which device (field report 71)."""

import importlib.util
import sys
from types import ModuleType, SimpleNamespace

import pytest

from verl_hw_core.errors import UnsupportedModelSettingError
from verl_hw_core.training.preparation import require_backend, require_quantization


def settings(backend: str | None, wanted: bool = True) -> SimpleNamespace:
    return SimpleNamespace(use_fused_kernels=wanted, fused_kernel_options={"impl_backend": backend})


@pytest.fixture
def installed(monkeypatch) -> set[str]:
    """Names of the modules that can be found."""
    found: set[str] = set()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name in found else None)
    return found


def test_nothing_is_checked_that_was_not_asked_for(installed):
    require_backend(settings("triton", wanted=False), "acmedev")
    require_backend(SimpleNamespace(use_fused_kernels=False, fused_kernel_options=None), "acmedev")


@pytest.mark.parametrize("device", ["acmedev", "cuda"])
def test_torch_runs_everywhere(installed, device):
    require_backend(settings("torch"), device)


@pytest.mark.parametrize(
    ("backend", "module", "device"), [("triton", "triton", "cuda"), ("liger", "liger_kernel", "acmedev")]
)
def test_kernels_run_where_their_package_is(installed, backend, module, device):
    with pytest.raises(UnsupportedModelSettingError, match=f"no module '{module}' is installed"):
        require_backend(settings(backend), device)
    installed.add(module)
    require_backend(settings(backend), device)


def test_triton_kernels_are_refused_off_cuda_even_where_triton_is(installed):
    installed.add("triton")
    with pytest.raises(UnsupportedModelSettingError, match="take CUDA tensors only, not acmedev"):
        require_backend(settings("triton"), "acmedev")


@pytest.mark.parametrize("options", [None, {}, {"impl_backend": "cutlass"}])
def test_an_unknown_backend_is_refused(installed, options):
    with pytest.raises(UnsupportedModelSettingError, match="knows the backends torch, triton and liger"):
        require_backend(SimpleNamespace(use_fused_kernels=True, fused_kernel_options=options), "cuda")


def with_triton_for(monkeypatch, device: str | None) -> None:
    """A triton whose driver is for ``device``, or that has none."""

    class Driver:
        @property
        def active(self):
            if device is None:
                raise RuntimeError("0 active drivers ([])")
            return SimpleNamespace(get_active_torch_device=lambda: SimpleNamespace(type=device))

    package, runtime = ModuleType("triton"), ModuleType("triton.runtime")
    runtime.driver = Driver()
    monkeypatch.setitem(sys.modules, "triton", package)
    monkeypatch.setitem(sys.modules, "triton.runtime", runtime)


@pytest.mark.parametrize(("driver", "why"), [(None, "0 active drivers"), ("cuda", "only for cuda")])
def test_quantization_aware_training_is_refused_without_a_triton_for_the_device(monkeypatch, driver, why):
    with_triton_for(monkeypatch, driver)
    with pytest.raises(UnsupportedModelSettingError, match=rf"qat.enable=True.*no driver for acmedev here.*{why}"):
        require_quantization(SimpleNamespace(qat=SimpleNamespace(enable=True)), "acmedev")


@pytest.mark.parametrize("enable", [True, False])
def test_quantization_aware_training_with_the_vendors_triton(monkeypatch, enable):
    with_triton_for(monkeypatch, "acmedev" if enable else None)
    require_quantization(SimpleNamespace(qat=SimpleNamespace(enable=enable)), "acmedev")
