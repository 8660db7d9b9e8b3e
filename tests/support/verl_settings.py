# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Every setting of the installed verl's actor, critic, reference, model, rollout, engine, optimizer and checkpoint,
and the row of the walk that speaks of it. Nothing of verl is imported: its YAML files are composed as its trainers
compose them, and the fields of its dataclasses are read from their source.

A setting is named by the class that it becomes a field of and its path in there, ``FSDPEngineConfig.fsdp_size``: it is
the same field under actor, reference, critic and the SFT trainer's engine.
"""

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WALK = ROOT / "tests" / "conformance" / "settings_walk.tsv"
VERDICTS = ("right", "no_effect_on_numbers", "refused", "not_ours", "unwalked")
ENGINES = ("fsdp", "megatron")

_SECTIONS = ("actor_rollout_ref", "critic", "engine", "optim", "model", "checkpoint", "profiler")
_COMPOSED = (
    ("ppo_trainer", ["model_engine=dp"]),
    ("ppo_trainer", ["model_engine=megatron"]),
    ("sft_trainer_engine", ["engine=fsdp", "optim=fsdp"]),
    ("sft_trainer_engine", ["engine=megatron", "optim=megatron"]),
)


def verl_source() -> Path:
    """Folder of the installed verl."""
    return Path(importlib.util.find_spec("verl").origin).parent


@cache
def settings() -> dict[str, tuple[str, ...]]:
    """Name of every setting -> its paths in verl's configuration; none for a field that the YAML files leave out."""
    found: dict[str, set[str]] = {}
    nested: set[str] = set()
    classes: set[str] = set()
    for tree in _trees():
        for section in _SECTIONS:
            if section in tree:
                _collect(tree[section], section, "", section, found, nested, classes)
    for name, fields in _dataclasses().items():
        if name in classes:
            for field in fields:
                full = f"{name}.{field}"
                if full not in nested and not any(one == full or one.startswith(f"{full}.") for one in found):
                    found[full] = set()
    return {name: tuple(sorted(paths)) for name, paths in sorted(found.items())}


def _trees() -> Iterator[dict[str, Any]]:
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(config_dir=str(verl_source() / "trainer" / "config"), version_base=None):
        for name, overrides in _COMPOSED:
            yield OmegaConf.to_container(compose(name, overrides=overrides), resolve=False)


def _collect(
    node: Any, path: str, inner: str, owner: str, found: dict[str, set[str]], nested: set[str], classes: set[str]
) -> None:
    """Note the leaves of ``node``, which is ``inner`` of the class or section ``owner``."""
    if not (isinstance(node, dict) and node):
        found.setdefault(f"{owner}.{inner}", set()).add(path)
        return
    if "_target_" in node:
        nested.add(f"{owner}.{inner}")
        owner, inner = node["_target_"].rsplit(".", 1)[1], ""
        classes.add(owner)
    for key, value in node.items():
        if key != "_target_":
            _collect(value, f"{path}.{key}", f"{inner}.{key}".lstrip("."), owner, found, nested, classes)


def _dataclasses() -> dict[str, list[str]]:
    """Name of every class of verl's configuration -> its fields, inherited ones included, but no nested classes."""
    source = verl_source()
    files = [
        *sorted((source / "workers" / "config").glob("*.py")),
        source / "trainer" / "config" / "config.py",
        source / "utils" / "profiler" / "config.py",
        source / "utils" / "qat" / "core.py",
    ]
    nodes = {
        node.name: node
        for file in files
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    }

    def fields(name: str) -> dict[str, str]:
        if name not in nodes:
            return {}
        known: dict[str, str] = {}
        for base in nodes[name].bases:
            known |= fields(ast.unparse(base).rsplit(".", 1)[-1])
        for item in nodes[name].body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                known[item.target.id] = ast.unparse(item.annotation)
        return known

    def plain(annotation: str) -> bool:
        return "BaseConfig" not in annotation and not any(name in annotation for name in nodes)

    return {
        name: [field for field, annotation in fields(name).items() if field[0] != "_" and plain(annotation)]
        for name in nodes
    }


@dataclass(frozen=True)
class Row:
    """What is known of a setting.

    Attributes:
        pattern: Name of the setting, with ``*`` where classes or settings share the row.
        verdict: One of :data:`VERDICTS`.
        evidence: What shows it (the head of the file lists the forms).
        cases: Runs of the walk, for ``walked``: overrides of verl's configuration.
        words: For people: the setting that works where this one is refused, and what else is worth knowing.
    """

    pattern: str
    verdict: str
    evidence: str
    cases: tuple[str, ...]
    words: str

    def matches(self, name: str) -> bool:
        """Whether the row speaks of this setting."""
        return fnmatchcase(name, self.pattern)


def rows() -> list[Row]:
    """The rows of the walk in the file's order."""
    found = []
    for line in WALK.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pattern, verdict, evidence, cases, words = line.split("\t")
            found.append(Row(pattern, verdict, evidence, tuple(filter(None, cases.split(" ; "))), words))
    return found


def rows_by_setting() -> dict[str, list[Row]]:
    """Every setting -> its rows, of which there should be one."""
    return {name: [row for row in rows() if row.matches(name)] for name in settings()}
