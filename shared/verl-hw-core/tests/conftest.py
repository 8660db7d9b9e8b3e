# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests that need verl in this process."""

import pytest


@pytest.fixture(scope="session")
def verl_without_plugins():
    """Import verl once, with no plugin: the tests register their own vendors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERL_USE_EXTERNAL_PLUGINS", "none")
        patch.delenv("VERL_PLATFORM", raising=False)
        import verl
    return verl


@pytest.fixture
def built_in_platforms(verl_without_plugins):
    """verl's own platform classes by name; another file's tests may have loaded wheels into this process."""
    from verl.plugin.platform.platform_manager import PlatformRegistry

    found = PlatformRegistry._platforms.items()
    return {name: cls for name, cls in found if cls.__module__.startswith("verl.")}
