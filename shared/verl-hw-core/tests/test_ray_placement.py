# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What fits on which nodes, and what a user reads when nothing does."""

import shlex
from dataclasses import replace

import pytest
from detectionkit import CAMBRICON, METAX

from verl_hw_core.errors import RayResourcesError
from verl_hw_core.platform import ray_resources
from verl_hw_core.ray_support import placement

MLU = {"CPU": 3.0, "MLU": 1.0}
CAMBRICON_TWO = replace(CAMBRICON, ray_resources=("MLU", "GPU"))


@pytest.mark.parametrize(
    ("groups", "nodes", "packed", "fit"),
    [
        ([2], [{"CPU": 6, "MLU": 2}], True, True),
        ([2], [{"CPU": 5, "MLU": 2}], True, False),
        ([2], [{"CPU": 6, "MLU": 1}] * 2, True, False),
        ([2], [{"CPU": 6, "MLU": 1}] * 2, False, True),
        ([2, 2], [{"CPU": 12, "MLU": 4}], True, True),
        ([2, 2], [{"CPU": 9, "MLU": 3}, {"CPU": 3, "MLU": 1}], True, False),
        ([1, 3], [{"CPU": 9, "MLU": 3}, {"CPU": 3, "MLU": 1}], True, True),
        ([2, 3], [{"CPU": 99, "MLU": 3}, {"CPU": 99, "MLU": 2}], True, True),
        ([1], [], True, False),
        ([1], [{"CPU": 99, "GPU": 8}], False, False),
        ([], [], True, True),
    ],
)
def test_fits(groups, nodes, packed, fit):
    assert placement.fits(MLU, groups, nodes, packed=packed) is fit


def test_fractions_are_counted_without_rounding_away_a_bundle():
    assert placement.fits({"MLU": 0.1}, [10], [{"MLU": 1.0}], packed=True)
    assert not placement.fits({"MLU": 0.1}, [11], [{"MLU": 1.0}], packed=True)


@pytest.fixture
def nodes(monkeypatch):
    """Set what the cluster offers, as {address: (resources, free)}."""
    monkeypatch.setattr(placement, "GRACE_SECONDS", 0.0)

    def offer(**found):
        monkeypatch.setattr(placement, "_nodes", lambda: [(name, *both) for name, both in found.items()])

    return offer


def refusal(spec, bundle, groups):
    with pytest.raises(RayResourcesError) as error:
        placement.require(spec, bundle, groups, packed=True)
    return str(error.value)


def test_a_cluster_without_the_device_names_both_ways_to_start_ray(nodes):
    nodes(head=({"CPU": 64.0}, {"CPU": 64.0}))
    text = refusal(CAMBRICON_TWO, MLU, [8])
    assert "verl wants 8 workers on cambricon (each group on one node), each with 3 CPU, 1 MLU" in text
    assert "head: 64 of 64 CPU free, 0 of 0 MLU free, 0 of 0 GPU free" in text
    assert """`ray start --resources='{"MLU": 8}' ...` or `ray start --num-gpus=8 ...`""" in text
    assert "+ray_kwargs.ray_init.num_gpus=" in text


def test_too_few_devices_and_devices_in_use(nodes):
    nodes(a=({"CPU": 64.0, "MLU": 4.0}, {"CPU": 64.0, "MLU": 4.0}), b=({"CPU": 64.0, "MLU": 8.0}, {"CPU": 64.0}))
    text = refusal(CAMBRICON_TWO, MLU, [8])
    assert "a: 64 of 64 CPU free, 4 of 4 MLU free" in text
    assert "b: 64 of 64 CPU free, 0 of 8 MLU free" in text
    assert "trainer.n_gpus_per_node" in text
    assert "+ray_kwargs" not in text


def test_too_few_cpus(nodes):
    nodes(a=({"CPU": 4.0, "GPU": 8.0}, {"CPU": 4.0, "GPU": 8.0}))
    assert "`ray start --num-cpus=24 ...`" in refusal(METAX, {"CPU": 3.0, "GPU": 1.0}, [8])


def test_what_fits_is_not_an_error(nodes):
    nodes(a=({"CPU": 6.0, "MLU": 2.0}, {"CPU": 6.0, "MLU": 2.0}))
    placement.require(CAMBRICON_TWO, MLU, [2], packed=True)


@pytest.mark.parametrize(("resource", "words"), [("GPU", ["--num-gpus=8"]), ("MLU", ['--resources={"MLU": 8}'])])
def test_start_options_are_what_a_shell_hands_to_ray(resource, words):
    assert shlex.split(ray_resources.start_options(resource, 8)) == words


def test_the_name_without_a_cluster_is_the_preferred_one():
    assert ray_resources.resource_name(CAMBRICON_TWO) == "MLU"
    assert ray_resources.resource_name(METAX) == "GPU"
