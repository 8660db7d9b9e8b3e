# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The comparisons: settings, weight mapping, round trip, logits and gradients, for a language model and a critic."""

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from verl_hw_tools.model_check.candidate import Candidate
from verl_hw_tools.model_check.reference import HEAD, SCORE, Reference
from verl_hw_tools.model_check.results import Finding, Status

_EXACT = 1e-6  # of a tensor that was only moved
_SHOWN = 6
_PARTS = ("", " attention", " mlp")


def compare(
    reference: Reference, build: Callable[[bool], Candidate], batches: Iterable[str], tolerance: float
) -> Iterator[Finding]:
    """Yield the comparisons of a language model and of a critic of the same weights.

    Args:
        reference: The Hugging Face side.
        build: Builds the Megatron side; with True, the critic.
        batches: Forms of batches that the model is registered for.
        tolerance: Largest relative difference that is taken for rounding.
    """
    for value, prefix in ((False, ""), (True, "value head: ")):
        folder = reference.value_folder if value else reference.folder
        yield from _Comparison(reference, build, value, prefix, tolerance).findings(folder, tuple(batches))


class _Comparison:
    def __init__(
        self, reference: Reference, build: Callable[[bool], Candidate], value: bool, prefix: str, tolerance: float
    ) -> None:
        self._reference, self._build, self._value, self._prefix = reference, build, value, prefix
        self._tolerance = tolerance
        self._weights = dict(reference.weights)
        if value:
            self._weights.pop(HEAD, None)
            self._weights[SCORE] = reference.score.detach()

    def findings(self, folder: Any, batches: tuple[str, ...]) -> Iterator[Finding]:
        built: list[Candidate] = []
        yield self._attempt("build", lambda: self._build_it(built))
        if not built:
            return
        candidate = built[0]
        if not self._value:
            yield self._attempt("norm epsilon", lambda: self._epsilons(candidate))
        mapping = self._attempt("weight mapping", lambda: self._mapping(candidate))
        yield mapping
        loaded = self._attempt("load", lambda: self._load(candidate, folder))
        if loaded.status is Status.FAIL:
            # What the mapping lacks is said already; the error that it leads to helps nobody.
            yield loaded if mapping.status is Status.OK else self._skip("all else", "the weights cannot be loaded")
            return
        yield self._attempt("round trip of weights", lambda: self._round_trip(candidate))
        for form in ("packed", "padded"):
            if form not in batches:
                yield self._skip(f"{form}", f"the model is not registered for {form} batches")
                continue
            yield from self._numbers(candidate, form)

    def _numbers(self, candidate: Candidate, form: str) -> Iterator[Finding]:
        what = "values" if self._value else "logits"
        outputs: list[torch.Tensor] = []
        yield self._attempt(f"{what}, {form}", lambda: self._output(candidate, form, outputs))
        if outputs:
            yield self._attempt(f"gradients, {form}", lambda: self._gradients(candidate, form, *outputs))

    def _attempt(self, name: str, check: Callable[[], Finding]) -> Finding:
        try:
            return check()
        except Exception as error:  # noqa: BLE001 - whatever a registration or a vendor's stack raises is the result
            traceback.print_exc()
            return self._fail(name, f"{type(error).__name__}: {error}".strip())

    def _ok(self, name: str, observed: str, worst: float | None = None) -> Finding:
        return Finding(name=self._prefix + name, status=Status.OK, observed=observed, worst=worst)

    def _skip(self, name: str, observed: str) -> Finding:
        return Finding(name=self._prefix + name, status=Status.SKIP, observed=observed)

    def _fail(self, name: str, observed: str, worst: float | None = None, tensors: Iterable[str] = ()) -> Finding:
        return Finding(
            name=self._prefix + name, status=Status.FAIL, observed=observed, worst=worst, tensors=tuple(tensors)
        )

    def _build_it(self, into: list[Candidate]) -> Finding:
        into.append(self._build(self._value))
        bridge = into[0].bridge
        count = sum(parameter.numel() for parameter in into[0].model.parameters())
        return self._ok("build", f"{type(into[0].model).__name__} with {count:,} parameters by {type(bridge).__name__}")

    def _epsilons(self, candidate: Candidate) -> Finding:
        wanted, found = self._reference.norm_epsilons(), candidate.norm_epsilons()
        if not wanted or not found:
            return self._skip("norm epsilon", "no norm with an epsilon was found on both sides")
        if set(wanted.values()) == set(found.values()):
            return self._ok("norm epsilon", _values(wanted))
        others = [name for name, value in wanted.items() if value not in found.values()]
        return self._fail(
            "norm epsilon", f"Hugging Face {_values(wanted)}, Megatron {_values(found)}", tensors=others or wanted
        )

    def _mapping(self, candidate: Candidate) -> Finding:
        """Every tensor of Megatron's is made of the checkpoint's, in its own shape, and all of those are used."""
        problems: list[str] = []
        used: set[str] = set()
        for name, tensor in candidate.model.state_dict().items():
            if "_extra_state" not in name:
                problem, names = self._mapped(candidate, name, tensor)
                used.update(names)
                problems += [problem] if problem else []
        unused = [name for name in self._weights if name not in used]
        problems += [f"no tensor of Megatron's takes {name}" for name in unused]
        if problems:
            return self._fail("weight mapping", _listed(problems), tensors=unused)
        return self._ok("weight mapping", f"{len(self._weights)} tensors of the checkpoint")

    def _mapped(self, candidate: Candidate, name: str, tensor: torch.Tensor) -> tuple[str, list[str]]:
        try:
            names = [SCORE if self._value and one == HEAD else one for one in candidate.names(name)]
        except Exception as error:  # noqa: BLE001 - each bridge has its own
            return f"{name}: {error}", []
        absent = [one for one in names if one not in self._weights]
        if absent:
            return f"{name} wants {', '.join(absent)}, which the checkpoint does not have", names
        made = candidate.bridge._weight_to_mcore_format(name, [self._weights[one] for one in names])
        if made.shape != tensor.shape:
            return f"{name} is {list(tensor.shape)}, and {list(made.shape)} from {', '.join(names)}", names
        return "", names

    def _load(self, candidate: Candidate, folder: Any) -> Finding:
        candidate.load(folder)
        return self._ok("load", "")

    def _round_trip(self, candidate: Candidate) -> Finding:
        found = candidate.exported()
        if self._value:
            found[SCORE] = found.pop(HEAD)
        missing, extra = self._weights.keys() - found.keys(), found.keys() - self._weights.keys()
        off = _differences(found, self._weights, _EXACT)
        problems = [f"{name} does not come back" for name in sorted(missing)]
        problems += [f"{name} is new" for name in sorted(extra)]
        problems += [f"{name} is off by {value:.2g}" for name, value in off.items()]
        if problems:
            worst = max(off.values(), default=None)
            return self._fail(
                "round trip of weights", _listed(problems), worst, [*sorted(missing), *sorted(extra), *off]
            )
        return self._ok("round trip of weights", f"{len(found)} tensors, name by name and bit by bit")

    def _output(self, candidate: Candidate, form: str, into: list[torch.Tensor]) -> Finding:
        wanted = self._reference.values() if self._value else self._reference.logits()
        found = candidate.output(self._reference.sequences, form)
        into += [found, wanted]
        name = f"{'values' if self._value else 'logits'}, {form}"
        worst = difference(found.detach().cpu(), wanted.detach())
        if worst <= self._tolerance:
            return self._ok(name, f"{len(wanted)} tokens in {len(self._reference.sequences)} sequences", worst)
        place, tensors = self._first_difference(candidate, form)
        return self._fail(name, place, worst, tensors)

    def _first_difference(self, candidate: Candidate, form: str) -> tuple[str, list[str]]:
        """Say which part of the model differs first, and which of the checkpoint's tensors it is made of."""
        wanted = self._reference.activations()
        found = candidate.activations(self._reference.sequences[0], form)
        order = ["embedding"] + [f"layer {index}" for index in range(len(candidate.model.decoder.layers))]
        for place in order:
            parts = [place + part for part in (*_PARTS[1:], "")] if place != "embedding" else [place]
            shared = [part for part in parts if part in wanted and part in found]
            if place in shared and difference(found[place], wanted[place]) > self._tolerance:
                first = next(part for part in shared if difference(found[part], wanted[part]) > self._tolerance)
                off = difference(found[first], wanted[first])
                return f"differs first in the output of {first}, by {off:.2g}", self._tensors_of(candidate, first)
        return "no layer's output differs: look at the final norm and the head", self._tensors_of(candidate, "head")

    def _tensors_of(self, candidate: Candidate, place: str) -> list[str]:
        prefixes = _prefixes(place)
        names = [
            hf_name
            for name in candidate.model.state_dict()
            if name.startswith(prefixes) and "_extra_state" not in name
            for hf_name in candidate.names(name)
        ]
        return list(dict.fromkeys(names))

    def _gradients(self, candidate: Candidate, form: str, found: torch.Tensor, wanted: torch.Tensor) -> Finding:
        generator = torch.Generator().manual_seed(1)
        direction = torch.randn(wanted.shape, generator=generator) / len(wanted)
        frozen = candidate.frozen()
        expected = self._reference.gradients(wanted, direction)
        own = candidate.gradients(found, direction)
        if self._value:
            own[SCORE] = own.pop(HEAD)
            expected.pop(HEAD, None)
        expected = {name: tensor for name, tensor in expected.items() if name not in frozen}
        missing = sorted(expected.keys() - own.keys())
        off = _differences(own, expected, self._tolerance)
        name = f"gradients, {form}"
        note = f"; not trained: {_listed(frozen)}" if frozen else ""
        if missing or off:
            problems = [f"{one} has none" for one in missing] + [f"{one} {value:.2g}" for one, value in off.items()]
            worst = max(off.values(), default=None)
            return self._fail(name, _listed(problems) + note, worst, [*missing, *off])
        worst = max((difference(own[one], expected[one]) for one in expected), default=0.0)
        return self._ok(name, f"{len(expected)} tensors{note}", worst)


def difference(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Largest difference, relative to the largest wanted value; infinite for another shape or not a number."""
    if found.shape != wanted.shape:
        return float("inf")
    scale = float(wanted.abs().max()) or 1.0
    off = float((found.float() - wanted.float()).abs().max()) / scale
    return float("inf") if off != off else off


def _differences(
    found: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor], tolerance: float
) -> dict[str, float]:
    """The tensors that differ, the worst first."""
    off = {name: difference(found[name], wanted[name]) for name in wanted if name in found}
    return {name: value for name, value in sorted(off.items(), key=lambda item: -item[1]) if not value <= tolerance}


def _prefixes(place: str) -> tuple[str, ...]:
    """Where the tensors of a place begin in a GPTModel."""
    if place == "embedding":
        return ("embedding.",)
    if place == "head":
        return ("decoder.final_layernorm.", "output_layer.")
    _, index, *part = place.split()
    layer = f"decoder.layers.{index}."
    if not part:
        return (layer,)
    if part == ["attention"]:
        return (f"{layer}self_attention.", f"{layer}input_layernorm.")
    return (f"{layer}mlp.", f"{layer}pre_mlp_layernorm.")


def _values(epsilons: Mapping[str, float]) -> str:
    return ", ".join(f"{value:g}" for value in sorted(set(epsilons.values())))


def _listed(items: list[str]) -> str:
    more = len(items) - _SHOWN
    return ", ".join(items[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
