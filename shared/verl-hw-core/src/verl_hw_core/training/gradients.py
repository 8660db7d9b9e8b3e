# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the gradient at a model's output reaches its parameters.

A kernel without a backward, or with one of zeros, trains a part of the model, or nothing, with green logs. Gradients
that are lawfully zero begin at the loss (GRPO over a group of equal rewards): there the output's gradient is zero too.
"""

import logging
import statistics
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed as dist

from verl_hw_core.errors import GradientError
from verl_hw_core.training.unread import refuse_unread_by_loss

logger = logging.getLogger("verl_hw_core")

JUMP = 1000.0
"""Times the median of the last steps from which on a gradient norm is said to have jumped."""
LOSS_JUMP = 10.0
"""Times the median of the last steps from which on the loss has jumped as well, which explains the norm."""
_STEPS_REMEMBERED, _STEPS_NEEDED, _SHOWN = 16, 5, 5
# Of torch's fallback for such operators (torch/csrc/autograd/autograd_not_implemented_fallback.cpp).
_NO_BACKWARD = "autograd kernel was not registered"


class GradientWatch:
    """Watches the steps of one engine; every rank of the engine has one and calls it at the same points.

    It looks at the output's gradient until a step's norm is not zero, and again when one is: else it costs nothing.
    """

    def __init__(self, models: Sequence[torch.nn.Module], by_module: bool) -> None:
        """Watch a model.

        Args:
            models: The model, or its parts that this rank has, after they were sharded.
            by_module: Every rank has all modules, and parameters have their gradients in ``grad``.
        """
        self._by_module = by_module
        self._armed, self._reached = True, False
        self._modules: dict[str, torch.nn.Module] = {}
        self._ran: dict[str, None] = {}  # names, in the order of the forward pass
        self._first_step: list[Any] = []  # handles of hooks that only the first step needs
        self._norms: deque[float] = deque(maxlen=_STEPS_REMEMBERED)
        self._losses: deque[float] = deque(maxlen=_STEPS_REMEMBERED)
        for model in models:
            model.register_forward_hook(self._look_at_output)
            for name, module in model.named_modules():
                if any(parameter.requires_grad for parameter in module.parameters(recurse=False)):
                    self._modules[name] = module
                    self._first_step.append(module.register_forward_hook(self._note(name)))

    def _note(self, name: str) -> Any:
        def hook(_module: torch.nn.Module, _inputs: Any, _output: Any) -> None:
            if torch.is_grad_enabled():
                self._ran[name] = None

        return hook

    def _look_at_output(self, _module: torch.nn.Module, _inputs: Any, output: Any) -> None:
        if self._armed and torch.is_grad_enabled():
            for tensor in _tensors(output):
                if tensor.requires_grad:
                    tensor.register_hook(self._remember)

    def _remember(self, gradient: torch.Tensor) -> None:
        self._reached = self._reached | gradient.detach().ne(0).any()

    def judge(self, norm: float) -> None:
        """Judge a step; collective over the default group where a norm is zero, and at the first that is not.

        Args:
            norm: The gradient norm over all ranks, before clipping.

        Raises:
            GradientError: The output had a gradient, and all parameters or those of a module that ran had none.
        """
        if norm == 0.0 and self._armed and any(_maximum([bool(self._reached)])):
            last = next(reversed(self._ran), "")
            raise GradientError(
                "All gradients are zero, while the gradient at the model's output is not: an operator after or in "
                f"{last or 'its last module'}, the module next to the loss, has no backward or one that gives zeros. "
                f"{_REMEDY}"
            )
        if norm > 0.0 and self._first_step:
            if self._by_module:
                self._require_all_reached()
            while self._first_step:
                self._first_step.pop().remove()
        self._armed, self._reached = norm == 0.0, False

    def _require_all_reached(self) -> None:
        """Check each module that ran: autograd left at least one of its parameters a gradient, on some rank."""
        found = {n: any(p.grad is not None for p in m.parameters(recurse=False)) for n, m in self._modules.items()}
        values = _maximum([name in self._ran for name in found] + list(found.values()))
        ran, reached = values[: len(found)], values[len(found) :]
        cut = [name for name, was_run, has in zip(found, ran, reached, strict=True) if was_run and not has]
        if cut and any(reached):  # Megatron keeps gradients elsewhere: there the norm is all that there is
            shown = ", ".join(reversed(cut[-_SHOWN:])) + (f" and {len(cut) - _SHOWN} more" if len(cut) > _SHOWN else "")
            raise GradientError(
                f"No gradient reaches {shown}, which took part in the forward pass, while the gradient at the model's "
                f"output is not zero: an operator in or after the first of these has no backward. {_REMEDY}"
            )

    def warnings_said(self) -> AbstractContextManager[None]:
        """Say torch's warning of an operator without a backward, while steps are looked at."""
        return _backward_warnings_said() if self._armed else nullcontext()

    def say_jump(self, norm: float, loss: float) -> None:
        """Warn of a gradient norm that is orders above those of the last steps while the loss is as before."""
        enough = len(self._norms) >= _STEPS_NEEDED  # and as many losses
        usual, usual_loss = (statistics.median(self._norms), statistics.median(self._losses)) if enough else (0.0, 0.0)
        if usual and norm > JUMP * usual and abs(loss) <= LOSS_JUMP * usual_loss:
            logger.warning(
                "The gradient norm is %.3g, %.0f times the median of the last %d steps, while the loss (%.3g) is as "
                "before. A wrong backward, or a reduction that nobody waited for, looks like this: see 'verl-hw check'",
                *(norm, norm / usual, len(self._norms), loss),
            )
        self._norms.append(norm)
        self._losses.append(abs(loss))


class WatchedEngine:
    """Puts a watch on an engine's steps; put it before verl's engine in the bases."""

    engine_config: Any
    optimizer_config: Any
    _watch: GradientWatch | None = None

    def watch_gradients(self, module: Any) -> None:
        """Watch the engine's model, or the list of parts that Megatron has of it."""
        in_parts = isinstance(module, list)
        self._watch = GradientWatch(module if in_parts else [module], by_module=not in_parts)

    def train_batch(self, data: Any, loss_function: Any) -> Any:
        """Train on a batch as verl does.

        Raises:
            UnsupportedModelSettingError: The loss' configuration asks for what nothing reads.
            GradientError: The gradient at the model's output does not reach its parameters.
        """
        refuse_unread_by_loss(loss_function, self.engine_config, self.optimizer_config)
        if self._watch is None:
            return super().train_batch(data, loss_function)  # type: ignore[misc]
        with self._watch.warnings_said():
            outputs = super().train_batch(data, loss_function)  # type: ignore[misc]
        if "grad_norm" in (metrics := outputs.get("metrics") or {}) and outputs.get("loss"):
            self._watch.say_jump(float(metrics["grad_norm"]), sum(map(float, outputs["loss"])))
        return outputs

    def optimizer_step(self) -> Any:
        """Step as verl does, then judge the gradients that it left."""
        norm = super().optimizer_step()  # type: ignore[misc]
        if self._watch is not None:
            self._watch.judge(float(norm))
        return norm


_REMEDY = (
    "'verl-hw check --only operators' tries them one by one; if kernels of a package are in use, leave them out with "
    "VERL_HW_MODEL_PATCHES=off"
)


def _tensors(output: Any) -> Iterator[torch.Tensor]:
    """Yield what a loss may be computed from: a tensor, the fields of a ModelOutput, or a tuple's members."""
    if isinstance(output, torch.Tensor):
        yield output
        return
    named = [getattr(output, name, None) for name in ("logits", "log_probs")]
    parts = named if any(isinstance(part, torch.Tensor) for part in named) else output
    yield from (part for part in (parts if isinstance(parts, (list, tuple)) else ()) if isinstance(part, torch.Tensor))


def _maximum(values: Sequence[bool]) -> list[bool]:
    """Return for each value whether it is true on any rank."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return list(values)
    from verl.plugin.platform import get_platform

    platform = get_platform()
    tensor = torch.tensor(values, dtype=torch.float32, device=f"{platform.device_name}:{platform.current_device()}")
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return [value > 0.0 for value in tensor.tolist()]


@contextmanager
def _backward_warnings_said() -> Iterator[None]:
    """Say torch's warning that an operator has no backward, also where warnings are ignored; others go on as before."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", message=f".*{_NO_BACKWARD}.*")
        yield
    for warning in caught:
        if _NO_BACKWARD in str(warning.message):
            logger.warning("%s. %s", str(warning.message).strip().split(" This may", 1)[0].rstrip("."), _REMEDY)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
