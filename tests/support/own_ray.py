# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The other side of raykit: a Ray that belongs to this program alone."""

import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray


@contextmanager
def own_ray(devices: int, cpus: int, **options: Any) -> Iterator[None]:
    """A Ray that counts so many devices of the platform; its processes and files are gone at the end."""
    from verl.plugin.platform import get_platform

    name = get_platform().ray_resource_name()
    counted: dict[str, Any] = {"num_gpus": devices} if name == "GPU" else {"resources": {name: devices}}
    folder = tempfile.mkdtemp(prefix="vhw", dir="/tmp")  # short: Ray puts sockets below it
    ray.init(
        address="local", num_cpus=cpus, include_dashboard=False, logging_level=logging.ERROR, _temp_dir=folder,
        **counted, **options,
    )  # fmt: skip
    try:
        yield
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
