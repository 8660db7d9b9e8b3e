# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's Megatron engines with what every accelerator needs. Importing this module imports no megatron.

The classes here and the vendors' are registered as they are. When one is built, Megatron is loaded and the class is
combined with verl's engine.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar

from verl.plugin.platform import get_platform
from verl.workers.engine.base import BaseEngine

from verl_hw_core import megatron, reduction, upstream
from verl_hw_core.facts.run_facts import record_engine
from verl_hw_core.megatron import settings
from verl_hw_core.training import memory, unread
from verl_hw_core.training.gradients import WatchedEngine
from verl_hw_core.training.preparation import prepare_device

_combined: dict[type[Any], type[Any]] = {}


class AcceleratorMegatronEngine(WatchedEngine, BaseEngine):
    """Base of the Megatron engines; a subclass names verl's class in :attr:`verl_engine`."""

    verl_engine: ClassVar[str]

    model_config: Any
    engine_config: Any
    optimizer_config: Any
    checkpoint_mananager: Any
    tf_config: Any
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
            upstream.apply(memory.MEGATRON_ORDER_ROW)
            names = {"__module__": cls.__module__, "__doc__": cls.__doc__}
            _combined[cls] = cls if issubclass(cls, engine) else type(cls.__name__, (cls, engine), names)
        return _combined[cls]

    def __init__(self, model_config: Any, engine_config: Any, optimizer_config: Any, *args: Any, **kwargs: Any) -> None:
        platform = get_platform()
        settings.require_possible(engine_config, platform.device_name)
        unread.refuse_unread_by_megatron(model_config, engine_config, optimizer_config)
        reduction.install(platform.device_name)
        prepare_device(platform)
        super().__init__(model_config, engine_config, optimizer_config, *args, **kwargs)

    def initialize(self) -> None:
        """Build model, optimizer and scheduler as verl does, then note what was built for whoever asked."""
        super().initialize()
        if self.engine_config.vanilla_mbridge and not self.engine_config.use_dist_checkpointing:
            from verl_hw_core.megatron.checkpoints import warn_of_left_out

            warn_of_left_out(self.bridge, self.module)
        if not self.engine_config.forward_only:
            self.watch_gradients(self.module)
        record_engine(self)

    def load_checkpoint(self, local_path: str, *args: Any, **kwargs: Any) -> None:
        """Load as verl does; a checkpoint that another parallel layout wrote is refused before anything is changed."""
        from verl_hw_core.megatron import checkpoints

        if local_path is not None and self.checkpoint_mananager.should_load_optimizer:
            checkpoints.require_same_cut(Path(local_path), self.tf_config)
        super().load_checkpoint(local_path, *args, **kwargs)

    def _build_tf_config(self) -> None:
        # They import megatron, which is loaded by now.
        from verl_hw_core.megatron import bridges

        bridges.require_bridge(self.engine_config.vanilla_mbridge)
        if self.engine_config.vanilla_mbridge:
            from verl_hw_core.megatron import architecture_bridge

            hf_config = self.model_config.hf_config
            architecture_bridge.require_architecture(hf_config, self.engine_config.use_remove_padding)
        if not settings.has_transformer_engine():
            settings.require_local(self.engine_config)
            overrides = self.engine_config.override_transformer_config
            sequence_parallel = self.engine_config.sequence_parallel
            overrides.update(settings.transformer_overrides(overrides, sequence_parallel=sequence_parallel))
            if not self.engine_config.forward_only:
                optimizer = settings.torch_adam_overrides(self.optimizer_config)
                object.__setattr__(self.optimizer_config, "override_optimizer_config", optimizer)  # it is frozen
        with (
            bridges.buildable(self.model_config.hf_config.model_type)
            if self.engine_config.vanilla_mbridge
            else nullcontext()
        ):
            super()._build_tf_config()
        if self.tf_config is not None:  # with Megatron-Bridge it comes with the model
            experts = getattr(self.tf_config, "num_moe_experts", None)
            settings.require_equal_experts(experts, self.engine_config.expert_model_parallel_size)
            if experts is not None:
                bridges.complete_experts(self.bridge, self.tf_config)
                settings.require_same_routing(self.model_config.hf_config, self.tf_config)


class MegatronLanguageModelEngine(AcceleratorMegatronEngine):
    """Megatron engine with a language model head."""

    verl_engine = "MegatronEngineWithLMHead"


class MegatronValueModelEngine(AcceleratorMegatronEngine):
    """Megatron engine with a value head."""

    verl_engine = "MegatronEngineWithValueHead"

    def get_per_tensor_param(self, *args: Any, **kwargs: Any) -> tuple[Iterator[tuple[str, Any]], Any]:
        """Export as verl does, with the head under transformers' name for it instead of the language model's."""
        parameters, peft_config = super().get_per_tensor_param(*args, **kwargs)
        named = (("score.weight" if name == "lm_head.weight" else name, value) for name, value in parameters)
        return named, peft_config
