# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong; every text says what was wanted, what was found and what to do."""


class SimulatorError(RuntimeError):
    """Base of every error of this package."""


class SettingsError(SimulatorError, ValueError):
    """A variable or argument of the simulator has a value that means nothing."""


class UnsupportedTorchError(SimulatorError):
    """The installed torch cannot host the requested device."""


class BuildError(SimulatorError):
    """The native half could not be compiled or loaded."""


class CacheDirectoryError(SimulatorError):
    """The cache folder cannot be written."""


class NotSimulatingError(SimulatorError):
    """A function that needs a simulated device was called in a process without one."""
