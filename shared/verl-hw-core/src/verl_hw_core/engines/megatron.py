# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's Megatron engines with what every accelerator needs. Importing this module imports no megatron.

The classes here and the vendors' are registered as they are. When one is built, Megatron is loaded and the class is
combined with verl's engine.
"""

from typing import Any, ClassVar

from verl.plugin.platform import get_platform
from verl.workers.engine.base import BaseEngine

from verl_hw_core import megatron, reduction
from verl_hw_core.run_facts import record_engine
from verl_hw_core.training import checkpoints, log_probs, memory, nested

_combined: dict[type[Any], type[Any]] = {}


class AcceleratorMegatronEngine(BaseEngine):
    """Base of the Megatron engines; a subclass names verl's class in :attr:`verl_engine`."""

    verl_engine: ClassVar[str]

    model_config: Any
    engine_config: Any
    bridge: Any
    module: Any

    def __new__(cls, *_: Any, **__: Any) -> Any:
        """Return an instance of this class and verl's engine in one.

        Raises:
            MegatronError: Megatron cannot be had in this process; the subclass says why.
        """
        return object.__new__(cls.load())

    @classmethod
    def load(cls) -> type[Any]:
        """Load Megatron, and return this class with verl's engine behind it; a second call costs nothing.

        Raises:
            MegatronError: As above.
        """
        if cls not in _combined:
            engine = megatron.load_engine(get_platform().spec, cls.verl_engine)
            names = {"__module__": cls.__module__, "__doc__": cls.__doc__}
            _combined[cls] = cls if issubclass(cls, engine) else type(cls.__name__, (cls, engine), names)
        return _combined[cls]

    def __init__(self, model_config: Any, engine_config: Any, *args: Any, **kwargs: Any) -> None:
        platform = get_platform()
        reduction.install(platform.device_name)
        log_probs.replace_helpers()
        nested.unwrap_constructors(platform.device_name)
        nested.synchronize_host_copies(platform)
        memory.survive_memory_queries()
        checkpoints.care_for_checkpoints()
        super().__init__(model_config, engine_config, *args, **kwargs)

    def initialize(self) -> None:
        """Build model, optimizer and scheduler as verl does, then note what was built for whoever asked."""
        super().initialize()
        record_engine(self)

    def _build_tf_config(self) -> None:
        from verl_hw_core.megatron import bridges, mends, settings

        bridges.require_bridge(self.engine_config.vanilla_mbridge)
        if not mends.has_transformer_engine():
            from megatron.core.transformer import TransformerConfig

            overrides = self.engine_config.override_transformer_config
            overrides.update(settings.local_overrides(overrides, frozenset(TransformerConfig.__dataclass_fields__)))
        super()._build_tf_config()


class MegatronLanguageModelEngine(AcceleratorMegatronEngine):
    """Megatron engine with a language model head."""

    verl_engine = "MegatronEngineWithLMHead"


class MegatronValueModelEngine(AcceleratorMegatronEngine):
    """Megatron engine with a value head."""

    verl_engine = "MegatronEngineWithValueHead"
