# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The variables that verl-hw itself reads, and those whose values are a choice; a test compares them with the code."""

OF_VERL_HW = (
    "VERL_HW_CUDA_MIGRATION",
    "VERL_HW_LAUNCH_ID",
    "VERL_HW_MODEL_PATCHES",
    "VERL_HW_PROBE_CACHE",
    "VERL_HW_PROBE_ROOT",
    "VERL_HW_REDUCTION",
    "VERL_HW_RUN_FACTS",
    "VERL_HW_SIM",
    "VERL_HW_SIM_CACHE",
    "VERL_HW_SIM_LIMITS",
    "VERL_HW_STRICT",
)

VALUES: dict[str, tuple[str, ...]] = {
    "VERL_HW_MODEL_PATCHES": ("auto", "portable", "off"),
    "VERL_HW_REDUCTION": ("auto", "sum", "native"),
}
