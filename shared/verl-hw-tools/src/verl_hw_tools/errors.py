# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the ``verl-hw`` command: each message says what was wanted, what was found and what to do next."""

from verl_hw_core.errors import VerlHwError


class MissingComponentError(VerlHwError, ImportError):
    """A command needs a package or tool that is not installed."""


class NoHardwareError(VerlHwError, RuntimeError):
    """A command was asked to use a vendor's hardware, which was not found on this machine."""


class OutputFolderError(VerlHwError, OSError):
    """The output folder cannot be used: it holds files of someone else, or cannot be written."""


class DemoDataError(VerlHwError, RuntimeError):
    """This machine does not hold enough text for the demo."""


class CheckDefinitionError(VerlHwError, ValueError):
    """A conformance check is defined wrongly: its id, its group or its module."""


class CheckSuiteError(VerlHwError, RuntimeError):
    """The conformance suite itself could not run; no verdict on the device."""


class UnreadableLogError(VerlHwError, ValueError):
    """A file is no log of a training run that can be read."""


class DamagedLogError(VerlHwError, ValueError):
    """A log is cut off or damaged, or a value in it is no number."""


class DuplicateStepsError(VerlHwError, ValueError):
    """A log holds the same steps twice: a resumed run, or several runs."""


class MissingMetricError(VerlHwError, ValueError):
    """A log does not hold a metric that is needed."""


class RunTooShortError(VerlHwError, ValueError):
    """A run has fewer steps than are judged."""


class AcceptanceSettingError(VerlHwError, ValueError):
    """A threshold or option of the acceptance command is unknown or cannot be right."""


class NotJudgedError(VerlHwError, ValueError):
    """A run cannot be judged as asked: its reference is no good run, or a stated criterion cannot be decided."""


class ModelCheckError(VerlHwError, RuntimeError):
    """A model cannot be compared with its Hugging Face counterpart."""


class VendorNameError(VerlHwError, ValueError):
    """A name for a new vendor is taken, or has a form that Python, torch or verl cannot use."""


class WorkspaceError(VerlHwError, ValueError):
    """A package cannot be added to verl-hw's own workspace: we are in none, or its files have another form."""


class VerlSourceError(VerlHwError, ValueError):
    """The verl whose source was to be judged cannot be found, fetched or read."""
