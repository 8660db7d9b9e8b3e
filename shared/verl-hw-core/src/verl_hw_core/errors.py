# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Exceptions of verl-hw: each message says what was wanted, what was found and what to do next."""


class VerlHwError(Exception):
    """Base class of all errors raised by verl-hw."""


class InvalidSpecError(VerlHwError, ValueError):
    """A :class:`~verl_hw_core.hardware.HardwareSpec` holds a value that cannot be right."""


class ContractMismatchError(VerlHwError):
    """A vendor wheel was built for another core contract than the installed verl-hw-core offers."""


class VerlVersionError(VerlHwError, ImportError):
    """The installed verl has no plugin interface, or none is installed."""


class ForeignPlatformError(VerlHwError):
    """Another package holds the platform key of a vendor wheel."""


class VendorRuntimeError(VerlHwError, RuntimeError):
    """The vendor's torch extension is missing, broken or lacks what verl needs."""


class VisibleDevicesError(VerlHwError, ValueError):
    """A visible-devices mask is malformed, or does not hold the device that was asked for."""


class CollectiveBackendError(VerlHwError, RuntimeError):
    """A collective backend was asked for that the vendor does not have."""


class UnknownPlatformError(SystemExit):
    """``VERL_PLATFORM`` names a platform that no installed package provides.

    A ``SystemExit`` on purpose: verl logs every ``Exception`` of a plugin at DEBUG and goes on, and the
    run would then end much later in an unrelated error.
    """
