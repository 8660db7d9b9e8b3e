# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Sorting, selecting, gathering and scattering. The values are small whole numbers, exact in every type."""

from typing import Any

import torch
from torch.nn import functional

from verl_hw_tools.conformance.checks._operator_case import Inputs, OperatorCase

_PADDING = "padding removal, sequence packing"


def _distinct(generator: torch.Generator, rows: int = 4, columns: int = 31) -> Any:
    return torch.stack([torch.randperm(columns, generator=generator) for _ in range(rows)]).double() - 15


def _top_k(i: Inputs) -> Any:
    values, indices = torch.topk(i["x"], 5, dim=-1)
    return torch.cat([values, indices.to(values.dtype)], dim=-1)


def _sort(i: Inputs) -> Any:
    values, indices = torch.sort(i["x"], dim=-1, descending=True)
    return torch.cat([values, indices.to(values.dtype)], dim=-1)


def _unpad_inputs(g: torch.Generator) -> Inputs:
    mask = torch.arange(7)[None, :] < torch.tensor([7, 3, 5])[:, None]
    return {"x": _distinct(g, 21, 5), "indices": mask.flatten().nonzero().flatten()}


def _unpad_and_pad(i: Inputs) -> Any:
    packed = i["x"][i["indices"]] * 2
    restored = torch.zeros_like(i["x"])
    restored[i["indices"]] = packed
    return restored


def _accumulate_inputs(g: torch.Generator) -> Inputs:
    return {
        "into": _distinct(g, 6, 5),
        "values": _distinct(g, 9, 5),
        "rows": torch.tensor([0, 2, 2, 5, 1, 0, 4, 2, 5]),
    }


INDEXING: tuple[OperatorCase, ...] = (
    OperatorCase(
        name="top_k",
        title="top-k",
        blocks="sampling, expert routing",
        make=lambda g: {"x": _distinct(g)},
        compute=_top_k,
    ),
    OperatorCase(
        name="sort",
        title="sort",
        blocks="sampling, sequence balancing",
        make=lambda g: {"x": _distinct(g)},
        compute=_sort,
    ),
    OperatorCase(
        name="index_put",
        title="indexing out of and into a tensor",
        blocks=_PADDING,
        make=_unpad_inputs,
        compute=_unpad_and_pad,
    ),
    OperatorCase(
        name="index_select",
        title="index_select along rows and columns",
        blocks=_PADDING,
        make=lambda g: {"x": _distinct(g, 6, 9), "rows": torch.tensor([5, 0, 0, 3])},
        compute=lambda i: i["x"].index_select(0, i["rows"]).index_select(1, i["rows"]),
    ),
    OperatorCase(
        name="scatter_add",
        title="scatter and add, with repeated places",
        blocks="expert routing, reward shaping",
        make=_accumulate_inputs,
        compute=lambda i: i["into"].scatter_add(0, i["rows"][:, None].expand(-1, 5), i["values"]),
    ),
    OperatorCase(
        name="index_put_accumulate",
        title="indexed accumulation, with repeated places",
        blocks="embedding gradients, expert routing",
        make=_accumulate_inputs,
        compute=lambda i: i["into"].index_put((i["rows"],), i["values"], accumulate=True),
    ),
    OperatorCase(
        name="cumsum",
        title="cumulative sum from the end",
        blocks="advantages, sequence offsets",
        make=lambda g: {"x": _distinct(g, 3, 11)},
        compute=lambda i: i["x"].flip(-1).cumsum(-1).flip(-1),
    ),
    OperatorCase(
        name="cat_pad",
        title="cat, split, pad, roll",
        blocks="batching, shifted labels",
        make=lambda g: {"a": _distinct(g, 3, 7), "b": _distinct(g, 3, 6)},
        compute=lambda i: torch.roll(functional.pad(torch.cat([i["a"], i["b"]], dim=-1), (2, 3)), -1, dims=-1).split(
            6, -1
        )[1],
    ),
)
