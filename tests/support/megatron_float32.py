# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Let verl's Megatron engines compute in float32, which verl refuses, and in which alone a comparison is sharp.

Loaded with ``VERL_USE_EXTERNAL_MODULES=megatron_float32``. For tests only.
"""

from types import ModuleType

from wrapt import register_post_import_hook


def _allow_float32(module: ModuleType) -> None:
    own = module.McoreEngineConfig.__post_init__

    def check(self):
        wanted = self.dtype
        if wanted == "float32":
            object.__setattr__(self, "dtype", "bfloat16")
        own(self)
        object.__setattr__(self, "dtype", wanted)

    module.McoreEngineConfig.__post_init__ = check


register_post_import_hook(_allow_float32, "verl.workers.config.engine")
