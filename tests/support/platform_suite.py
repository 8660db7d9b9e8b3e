# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What every vendor's platform must show on simulated devices; a vendor's test states its facts and inherits this."""

from typing import Any, ClassVar

import pytest
from platformkit import platform_answers


class PlatformSuite:
    """Subclass as ``Test<Vendor>Platform`` and fill in the facts.

    Attributes:
        key: The platform's key; the simulator has a profile of that name.
        mask: Visibility variables of the process, which sees devices out of eight.
        cards: Physical ids behind ordinals 0, 1, ... under that mask.
        facts: Expected answers, by their name in platform_program.py.
        ray_resource: Ray's name of the device where no cluster is connected.
    """

    key: ClassVar[str]
    mask: ClassVar[dict[str, str]]
    cards: ClassVar[list[str]]
    facts: ClassVar[dict[str, Any]]
    ray_resource: ClassVar[str] = "GPU"

    @pytest.fixture(scope="class")
    def answers(self) -> dict[str, Any]:
        return platform_answers(self.key, devices=8, **self.mask)

    def test_facts(self, answers):
        assert {name: answers[name] for name in self.facts} == self.facts

    def test_device_module_is_torchs(self, answers):
        assert answers["module"] == f"torch.{answers['device']}"

    def test_devices_are_counted_and_selected(self, answers):
        assert answers["count"] == len(self.cards)
        assert (answers["current"], answers["default_device_of_tensors"]) == (1, 1)
        assert answers["platform_available"] == [True, True]

    def test_an_ordinal_out_of_range_is_an_error(self, answers):
        assert answers["bad_ordinal"] == "VendorRuntimeError"

    def test_device_uuids_follow_the_mask(self, answers):
        assert answers["uuids"] == self.cards

    def test_collective_backend_is_known_to_torch(self, answers):
        assert answers["ccl_known_to_torch"]

    def test_ray_is_asked_for_the_resource(self, answers):
        name = self.ray_resource
        options = {"num_gpus": 1} if name == "GPU" else {"resources": {name: 1}}
        assert (answers["ray_resource"], answers["ray_options"]) == (name, options)

    def test_seeding_reaches_the_device(self, answers):
        assert answers["same_seed_same_draws"]
