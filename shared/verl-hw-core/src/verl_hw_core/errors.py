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


class VendorRuntimeError(VerlHwError, RuntimeError):
    """The vendor's torch extension is missing, broken or lacks what verl needs."""


class VisibleDevicesError(VerlHwError, ValueError):
    """A visible-devices mask is malformed, or does not hold the device that was asked for."""


class DeviceAssignmentError(VerlHwError, RuntimeError):
    """A Ray worker cannot be given a device of its own."""


class RayResourcesError(VerlHwError, ValueError):
    """The Ray cluster does not offer the devices that were asked for."""


class CollectiveBackendError(VerlHwError, RuntimeError):
    """A collective backend was asked for that the vendor does not have."""


class UnknownPlatformError(VerlHwError, ValueError):
    """``VERL_PLATFORM`` names a platform that no installed package provides."""


class UnknownVendorError(VerlHwError, ValueError):
    """A vendor was named that no installed wheel provides."""


class MissingComponentError(VerlHwError, ImportError):
    """A command needs a package or tool that is not installed."""


class NoHardwareError(VerlHwError, RuntimeError):
    """A command was asked to use a vendor's hardware, which was not found on this machine."""


class OutputFolderError(VerlHwError, OSError):
    """The output folder cannot be used: it holds files of someone else, or cannot be written."""


class DemoDataError(VerlHwError, RuntimeError):
    """This machine does not hold enough text for the demo."""


class TrainingFailedError(VerlHwError, RuntimeError):
    """A training run ended with an error, stopped making progress or left no result."""


class ProbeRootError(VerlHwError, ValueError):
    """``VERL_HW_PROBE_ROOT`` does not name a directory."""


class ReductionError(VerlHwError, RuntimeError):
    """A collective backend computes a wrong sum, or the reduction was configured wrongly."""


class UnsupportedPrecisionError(VerlHwError, ValueError):
    """The training precision that was asked for cannot work on this chip."""


class CheckDefinitionError(VerlHwError, ValueError):
    """A conformance check is defined wrongly: its id, its group or its module."""


class CheckSuiteError(VerlHwError, RuntimeError):
    """The conformance suite itself could not run; no verdict on the device."""


class UnsupportedModelSettingError(VerlHwError, ValueError):
    """A model setting (padding removal, sequence parallelism, kernels) cannot give right numbers on this chip."""


class ModelPatchError(VerlHwError, ValueError):
    """A model patch is declared wrongly, or ``VERL_HW_MODEL_PATCHES`` holds an unknown value."""


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


class RolloutConfigError(VerlHwError, ValueError):
    """A rollout was configured for something that it cannot do on this chip."""


class SamplingParameterError(VerlHwError, ValueError):
    """A request has a sampling parameter that is unknown, or a value that cannot be right."""


class RolloutNotReadyError(VerlHwError, RuntimeError):
    """Generation was asked for while the weights are not there: before the first sync, asleep, after a failed one."""


class WeightSyncError(VerlHwError, RuntimeError):
    """The tensors that the trainer sent are not those of the rollout's model."""


class WeightTransferError(VerlHwError, RuntimeError):
    """Weights could not be sent to the rollout workers; all ranks of the group raise the same text.

    Attributes:
        rank: Rank in the weight-sync group that failed, None when unknown.
        bucket: Number of the bucket, None before the first one.
        tensor: Name of the tensor, or of the first and last one of the bucket.
    """

    def __init__(
        self, message: str, *, rank: int | None = None, bucket: int | None = None, tensor: str | None = None
    ) -> None:
        super().__init__(message)
        self.rank = rank
        self.bucket = bucket
        self.tensor = tensor


class GenerationError(VerlHwError, RuntimeError):
    """A request cannot be answered, or the model's output for it is not finite."""


class MegatronError(VerlHwError, RuntimeError):
    """A Megatron engine was asked for and cannot be had in this process."""


class MegatronMissingError(MegatronError, ImportError):
    """megatron-core is not installed."""


class MegatronBridgeError(MegatronError, ImportError):
    """megatron-core is there, and the bridge that converts Hugging Face models to it is not, or does not import."""


class MegatronImportError(MegatronError, ImportError):
    """A part of the vendor's stack, or of megatron-core, is installed and fails while it is imported."""


class LoadOrderError(MegatronError):
    """Something was imported before the vendor's module that has to come first."""


class MegatronCheckpointError(MegatronError, ValueError):
    """A checkpoint of a Megatron engine cannot be loaded into an engine with other parallel sizes."""


class MegatronArchitectureError(MegatronError, ValueError):
    """The registration of a model for the Megatron backend is wrong or incomplete."""


class UnregisteredArchitectureError(MegatronError, LookupError):
    """The Megatron backend has no bridge for a model."""


class ModelCheckError(VerlHwError, RuntimeError):
    """A model cannot be compared with its Hugging Face counterpart."""


class VendorNameError(VerlHwError, ValueError):
    """A name for a new vendor is taken, or has a form that Python, torch or verl cannot use."""


class WorkspaceError(VerlHwError, ValueError):
    """A package cannot be added to verl-hw's own workspace: we are in none, or its files have another form."""
