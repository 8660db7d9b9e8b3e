# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a parent process sets for its children. Does not import torch."""

from verl_hw_sim import limits as limits_module
from verl_hw_sim.fake_host import ensure_fake_host
from verl_hw_sim.profiles import get_profile
from verl_hw_sim.settings import LIMITS_ENVVAR, PROBE_ROOT_ENVVAR, SIM_ENVVAR, Request, parse_request


def environment_for(vendor: str, devices: int, limits: str) -> dict[str, str]:
    """See :func:`verl_hw_sim.simulated_environment`."""
    request = parse_request(Request(vendor, devices).text)
    profile = get_profile(request.vendor)
    limits_module.parse(limits)
    return {
        SIM_ENVVAR: request.text,
        PROBE_ROOT_ENVVAR: str(ensure_fake_host(profile, request.devices)),
        LIMITS_ENVVAR: limits,
    }
