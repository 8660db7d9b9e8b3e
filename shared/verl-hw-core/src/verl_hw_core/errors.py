# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Exceptions of verl-hw: each message says what was wanted, what was found and what to do next."""


class VerlHwError(Exception):
    """Base class of all errors raised by verl-hw."""


class InvalidSpecError(VerlHwError, ValueError):
    """A :class:`~verl_hw_core.facts.hardware.HardwareSpec` holds a value that cannot be right."""


class ContractMismatchError(VerlHwError):
    """A vendor wheel was built for another core contract than the installed verl-hw-core offers."""


class VerlVersionError(VerlHwError, ImportError):
    """The installed verl has no plugin interface, or none is installed."""


class UpstreamPatchError(VerlHwError, RuntimeError):
    """A change of verl, torch or another package, without which numbers would be wrong, cannot be made here."""


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


class TrainingFailedError(VerlHwError, RuntimeError):
    """A training run ended with an error, stopped making progress or left no result."""


class ProbeRootError(VerlHwError, ValueError):
    """``VERL_HW_PROBE_ROOT`` does not name a directory."""


class ReductionError(VerlHwError, RuntimeError):
    """A collective backend computes a wrong sum, or the reduction was configured wrongly."""


class StrictModeError(VerlHwError, RuntimeError):
    """``VERL_HW_STRICT=1`` is set, and there was a warning of ours; or it holds a value that is unknown."""


class GradientError(VerlHwError, RuntimeError):
    """The gradient at a model's output does not reach its parameters: an operator's backward is missing or wrong."""


class UnsupportedPrecisionError(VerlHwError, ValueError):
    """The training precision that was asked for cannot work on this chip."""


class UnsupportedModelSettingError(VerlHwError, ValueError):
    """A setting of model or engine (padding removal, parallelism, kernels) cannot give right numbers here."""


class ModelPatchError(VerlHwError, ValueError):
    """A model patch is declared wrongly, or ``VERL_HW_MODEL_PATCHES`` holds an unknown value."""


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
        self.rank, self.bucket, self.tensor = rank, bucket, tensor


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
