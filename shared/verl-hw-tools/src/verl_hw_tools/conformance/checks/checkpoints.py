# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Group ``checkpoints``: sharded state is saved, restored, and training goes on exactly where it was."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.fsdp import (
    FullyShardedDataParallel,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    StateDictType,
)

from verl_hw_tools.conformance.bench import Bench
from verl_hw_tools.conformance.checks._ranked import settle
from verl_hw_tools.conformance.checks._sharded import fsdp1, fsdp2, step_of, whole_parameters
from verl_hw_tools.conformance.checks._tiny_model import batch, build, optimizer_of
from verl_hw_tools.conformance.numerics import require_equal
from verl_hw_tools.conformance.registry import check
from verl_hw_tools.conformance.verdicts import require

_RESUME = "resuming from a checkpoint"

Store = Callable[[Any, Any, Path], None]


def _replay(bench: Bench, wrap: Callable[[Bench], Any], save: Store, load: Store) -> None:
    """Train, save, train on; load into a fresh model, train on again: the same to the last bit."""
    model = wrap(bench)
    optimizer = optimizer_of(model)
    step_of(model, optimizer, batch(0, bench.rank).to(bench.device))
    folder = bench.folder / f"checkpoint-{wrap.__name__}-{save.__name__}"
    folder.mkdir(exist_ok=True)
    save(model, optimizer, folder)
    saved = whole_parameters(model)
    dist.barrier()
    loss, norm = step_of(model, optimizer, batch(1, bench.rank).to(bench.device))
    after = whole_parameters(model)
    fresh = wrap(bench)
    fresh_optimizer = optimizer_of(fresh)
    # One step gives the optimizer a state to load into, and weights that are not those of the checkpoint.
    step_of(fresh, fresh_optimizer, batch(5, bench.rank).to(bench.device))
    load(fresh, fresh_optimizer, folder)
    _require_parameters(whole_parameters(fresh), saved, "after loading")
    loss_again, norm_again = step_of(fresh, fresh_optimizer, batch(1, bench.rank).to(bench.device))
    settle(bench)
    require_equal(loss_again, loss, "the loss after loading")
    require_equal(norm_again, norm, "the gradient norm after loading")
    _require_parameters(whole_parameters(fresh), after, "one step after loading")


def _require_parameters(found: dict[str, Any], wanted: dict[str, Any], when: str) -> None:
    require(found.keys() == wanted.keys(), f"{sorted(found)}", f"{sorted(wanted)}")
    for name, value in wanted.items():
        require_equal(found[name], value, f"{name} {when}")


def _save_distributed(model: Any, optimizer: Any, folder: Path) -> None:
    states, optimizer_states = get_state_dict(model, optimizer)
    dcp.save({"model": states, "optimizer": optimizer_states}, checkpoint_id=str(folder))


def _load_distributed(model: Any, optimizer: Any, folder: Path) -> None:
    states, optimizer_states = get_state_dict(model, optimizer)
    dcp.load({"model": states, "optimizer": optimizer_states}, checkpoint_id=str(folder))
    set_state_dict(model, optimizer, model_state_dict=states, optim_state_dict=optimizer_states)


@check("checkpoints.fsdp2_distributed", blocks=_RESUME, processes=2)
def fsdp2_distributed(bench: Bench) -> None:
    """FSDP2 state goes through torch.distributed.checkpoint."""
    _replay(bench, fsdp2, _save_distributed, _load_distributed)


def _files(folder: Path) -> tuple[Path, Path]:
    return folder / f"model-{dist.get_rank()}.pt", folder / f"optimizer-{dist.get_rank()}.pt"


def _save_by_rank(model: Any, optimizer: Any, folder: Path) -> None:
    model_file, optimizer_file = _files(folder)
    with _sharded(model):
        torch.save(model.state_dict(), model_file)
        states = (
            FullyShardedDataParallel.optim_state_dict(model, optimizer)
            if isinstance(model, FullyShardedDataParallel)
            else optimizer.state_dict()
        )
        torch.save(states, optimizer_file)


def _load_by_rank(model: Any, optimizer: Any, folder: Path) -> None:
    model_file, optimizer_file = _files(folder)
    with _sharded(model):
        model.load_state_dict(torch.load(model_file, weights_only=False))
        states = torch.load(optimizer_file, weights_only=False)
        if isinstance(model, FullyShardedDataParallel):
            states = FullyShardedDataParallel.optim_state_dict_to_load(model, optimizer, states)
        optimizer.load_state_dict(states)


def _sharded(model: Any) -> Any:
    """As verl saves: the shards on the host for FSDP1; FSDP2's state is sharded anyway."""
    if not isinstance(model, FullyShardedDataParallel):
        return nullcontext()
    return FullyShardedDataParallel.state_dict_type(
        model,
        StateDictType.SHARDED_STATE_DICT,
        ShardedStateDictConfig(offload_to_cpu=True),
        ShardedOptimStateDictConfig(offload_to_cpu=True),
    )


@check("checkpoints.fsdp1", blocks=f"{_RESUME}, strategy fsdp", processes=2)
def fsdp1_by_rank(bench: Bench) -> None:
    """FSDP1 shards are saved by each rank, on the host."""
    _replay(bench, fsdp1, _save_by_rank, _load_by_rank)


@check("checkpoints.fsdp2", blocks=f"{_RESUME}, strategy fsdp2", processes=2)
def fsdp2_by_rank(bench: Bench) -> None:
    """FSDP2 shards are saved by each rank."""
    _replay(bench, fsdp2, _save_by_rank, _load_by_rank)


@check("checkpoints.full", blocks="export to Hugging Face format, weight transfer", processes=2)
def full(bench: Bench) -> None:
    """The whole state is gathered to the host of rank 0 and spread from there."""
    wanted = {name: value.detach().clone() for name, value in build().named_parameters()}
    model = fsdp2(bench)
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    states = get_model_state_dict(model, options=options)
    if bench.rank == 0:
        _require_parameters(states, wanted, "gathered")
    for parameter in model.parameters():
        parameter.detach().to_local().zero_()
    spread = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    # A copy: torch puts the sharded tensors into the dictionary that it is given.
    set_model_state_dict(model, dict(wanted) if bench.rank == 0 else {}, options=spread)
    settle(bench)
    _require_parameters(whole_parameters(model), wanted, "spread from rank 0")
