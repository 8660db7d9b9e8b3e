# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""docs/ray.md says what the vendors' facts say, and the seams of verl that it passes by are still there."""

import importlib
from importlib.util import find_spec
from pathlib import Path

import pytest

from verl_hw_core.errors import DeviceAssignmentError, RayResourcesError, VisibleDevicesError
from verl_hw_core.platform import ray_resources
from verl_hw_core.ray_support import environment

DOCUMENT = (Path(__file__).parents[2] / "docs" / "ray.md").read_text(encoding="utf-8")
VENDORS = ("cambricon", "enflame", "intel", "metax")


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_document_says_how_to_start_ray_for_each_vendor(vendor):
    spec = importlib.import_module(f"verl_hw_{vendor}.spec").SPEC
    (row,) = [line for line in DOCUMENT.splitlines() if line.startswith(f"| {spec.display_name} |")]
    for resource in spec.ray_resources:
        assert f"ray start --head {ray_resources.start_options(resource, 8)}`" in row
    for name in (*spec.overriding_visible_envvars, *spec.filtering_envvars):
        assert f"`{name}`" in DOCUMENT
    assert f"`{spec.visible_devices_envvar}`" in DOCUMENT


def test_the_document_names_errors_and_variables():
    for error in (RayResourcesError, DeviceAssignmentError, VisibleDevicesError):
        assert f"| `{error.__name__}` |" in DOCUMENT
    for name in environment.FORWARDED:
        assert f"`{name}`" in DOCUMENT


# Places where verl says cuda or npu and means the accelerator, and why each does no harm to our devices. A line that
# verl has changed is red: read the place again.
SEAMS = {
    ("single_controller/ray/base.py", 'kwargs.get("device_name", "cuda")'): "a label; the platform's name is used",
    ("utils/distributed.py", "import pynvml"): "NUMA affinity is NVIDIA's; without pynvml it warns and goes on",
    ("single_controller/base/worker.py", "RAY_EXPERIMENTAL_NOSET_*_VISIBLE_DEVICES"): "ledger row worker-device",
    ("utils/ray_utils.py", '"RAY_EXPERIMENTAL_NOSET_ONEAPI_DEVICE_SELECTOR",'): "ledger row worker-device",
    ("single_controller/ray/base.py", 'node_info.get("NPU", 0)'): "ledger row resource-check",
    ("workers/rollout/vllm_rollout/vllm_async_server.py", "get_accelerator_ids()[get_resource_name()][0]"): (
        "ledger row ray-accelerator-ids"
    ),
}


@pytest.mark.parametrize(("file", "text"), SEAMS, ids=lambda value: value.rsplit("/", 1)[-1])
def test_the_seams_of_verl_are_where_they_were(file, text):
    origin = find_spec("verl").origin  # looked up, not imported
    assert text in (Path(origin).parent / file).read_text(encoding="utf-8"), SEAMS[file, text]
