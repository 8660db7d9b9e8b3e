# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Megatron for this process's device without an engine: what a program needs before it imports megatron."""

from verl_hw_core.errors import MegatronError


def load() -> None:
    """Load Megatron and mbridge in the order that the device needs, as our engines do.

    Raises:
        MegatronError: Megatron cannot be had in this process, or verl chose a platform that is none of ours.
    """
    import verl.workers.engine  # noqa: F401 - registration puts verl's own import of megatron off, right there
    from verl.plugin.platform import get_platform

    from verl_hw_core import megatron
    from verl_hw_core.platform import AcceleratorPlatform

    platform = get_platform()
    if not isinstance(platform, AcceleratorPlatform):
        raise MegatronError(
            f"verl chose the platform {type(platform).__name__}, which is none of verl-hw's: see verl-hw detect"
        )
    megatron.load_engine(platform.spec, "MegatronEngineWithLMHead")

    from verl_hw_core.megatron import bridges

    bridges.require_bridge(vanilla=True)
