# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The names that core's messages know are those of the workspace's wheels."""

import json
from importlib import resources

from verl_hw_tools.installed import installed_wheels


def test_every_name_of_every_wheel_is_known():
    known = json.loads(resources.files("verl_hw_core").joinpath("known_wheels.json").read_text(encoding="utf-8"))
    wheels = [wheel for wheel in installed_wheels() if wheel.spec is not None]
    assert known == {name: wheel.distribution for wheel in wheels for name in wheel.spec.names}
