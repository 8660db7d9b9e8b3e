# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Commands in the documents exist, with their options, scripts and variables."""

import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from documents import ROOT, all_blocks, documents, shell_lines, spans
from machine_speed import scaled

SHELL = ("bash", "sh", "")


def lines_with(start: str) -> list[tuple[str, str]]:
    """Place and text of each shell line or code span in which ``start`` is run."""
    found = [(block.where, line) for block in all_blocks(*SHELL) for line in shell_lines(block.text)]
    found += [(str(path.relative_to(ROOT)), span) for path in documents() for span in spans(path)]
    return [(where, line[line.index(start) :]) for where, line in found if re.search(rf"(^|[ ;|]){start}", line)]


def words(line: str) -> list[str]:
    """The words of a command, up to where another one or a comment begins."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()")
    lexer.whitespace_split = True
    result: list[str] = []
    for word in lexer:
        if set(word) <= set("|&;()>"):
            break
        result.append(word)
    return result


def problem(arguments: list[str]) -> str | None:
    """What is wrong with the arguments of ``verl-hw``, None if nothing."""
    from verl_hw_tools.cli.app import app

    # typer brings a click of its own, so nothing here asks for a class of click's.
    command: Any = typer.main.get_command(app)
    rest = list(arguments)
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    options = {name: one for one in command.params for name in (*one.opts, *one.secondary_opts) if name[0] == "-"}
    words_left = sum(1 for one in command.params if one.param_type_name == "argument")
    while rest:
        word, _, value = rest.pop(0).partition("=")
        if word in ("-h", "--help"):
            continue
        if word.startswith("-"):
            if word not in options:
                return f"no option {word}"
            if not value and not getattr(options[word], "is_flag", False) and rest:
                rest.pop(0)
        elif words_left == 0:
            return f"unexpected {word!r}"
        else:
            words_left -= 1
    return None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("check --vendor intel --nproc 8", None),
        ("demo grpo --vendor x --nodes 2", None),
        ("checkup", "unexpected 'checkup'"),
        ("check --vender intel", "no option --vender"),
        ("doctor metax", "unexpected 'metax'"),
    ],
)
def test_a_wrong_command_is_found(line, expected):
    assert problem(line.split()) == expected


def test_every_verl_hw_command_exists():
    found = lines_with("verl-hw ")
    assert len(found) > 60
    wrong = [(where, line, why) for where, line in found if (why := problem(words(line)[1:])) is not None]
    assert wrong == []


def test_every_dev_command_exists():
    usage = subprocess.run(
        [sys.executable, ROOT / "scripts" / "dev.py", "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=scaled(60),
    ).stdout
    commands = set(re.findall(r"^  (\w+)", usage, re.MULTILINE))
    used = {words(line)[2] for _, line in lines_with("python3 scripts/dev.py ")}
    assert used - commands - {"--help"} == set()


def test_every_script_is_there():
    named = {
        (where, name)
        for where, line in [*lines_with("scripts/"), *lines_with("python3 scripts/")]
        for name in re.findall(r"scripts/[\w/]+\.(?:py|sh)", line)
    }
    assert [(where, name) for where, name in named if not (ROOT / name).is_file()] == []


def test_every_module_that_is_run_exists():
    modules = {line.split()[2] for start in ("python -m ", "python3 -m ") for _, line in lines_with(start)}
    ours = {name.rstrip("`") for name in modules if name.startswith(("verl_hw", "verl."))}
    # A file, not an import: importing a parent of verl's would import torch.
    missing = [name for name in ours if not _module_file(name)]
    assert ours
    assert missing == []


def _module_file(name: str) -> bool:
    top, *rest = name.split(".")
    folders = find_spec(top).submodule_search_locations or []
    path = Path(folders[0]).joinpath(*rest)
    return path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


def test_every_variable_of_the_baseline_script_exists():
    script = (ROOT / "scripts" / "baseline_grpo_gsm8k.sh").read_text(encoding="utf-8")
    known = {*re.findall(r'^: "\$\{([A-Z_]+):=', script, re.MULTILINE), "DATA_DIR", "MODEL_DIR"}
    runs = [
        line for block in all_blocks(*SHELL) for line in shell_lines(block.text) if "baseline_grpo_gsm8k.sh" in line
    ]
    assert len(runs) > 10
    named = {name for line in runs for name in re.findall(r"\b([A-Z_]+)=", line.partition("baseline_grpo")[0])}
    assert named - known == set()


def test_every_option_of_verls_trainer_exists():
    known = _verl_options()
    pattern = re.compile(r"(?<![\w+.])((?:actor_rollout_ref|trainer|data|algorithm|critic)\.[\w.]+)=")
    named = {
        (str(path.relative_to(ROOT)), key)
        for path in documents()
        for key in pattern.findall(path.read_text(encoding="utf-8"))
    }
    assert len(named) > 20
    assert sorted(name for name in named if name[1] not in known) == []


def _verl_options() -> set[str]:
    """Keys of the trainer's configuration, with FSDP and with Megatron engines."""
    folder = Path((find_spec("verl").submodule_search_locations or [])[0]) / "trainer" / "config"
    files = [folder / "_generated_ppo_trainer.yaml", folder / "_generated_ppo_megatron_trainer.yaml"]
    return {key for file in files for key in _leaves(yaml.safe_load(file.read_text(encoding="utf-8")))}


def _leaves(tree: dict, prefix: str = "") -> set[str]:
    found = set()
    for key, value in tree.items():
        found.add(f"{prefix}{key}")
        if isinstance(value, dict):
            found |= _leaves(value, f"{prefix}{key}.")
    return found


def test_every_variable_of_ours_is_read_somewhere():
    sources = [*ROOT.glob("shared/*/src/**/*.py"), *ROOT.glob("packages/*/src/**/*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    named = {
        (str(path.relative_to(ROOT)), name)
        for path in documents()
        for name in re.findall(r"\bVERL_HW_[A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8"))
    }
    assert named
    assert sorted(name for name in named if name[1] not in code) == []
