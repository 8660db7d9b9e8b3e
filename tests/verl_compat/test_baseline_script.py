# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``scripts/baseline_grpo_gsm8k.sh``: what it runs, what verl makes of it, and how it ends."""

import os
import re
import shlex
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from fake_python import fake_python
from machine_speed import scaled
from wheelkit import VENDORS, from_index, uv

from verl_hw_tools.acceptance.baseline import baseline_lines, main
from verl_hw_tools.acceptance.readers import read_run
from verl_hw_tools.installed import find_wheel, installed_wheels

SCRIPT = Path(__file__).parents[2] / "scripts" / "baseline_grpo_gsm8k.sh"


@pytest.fixture
def place(tmp_path):
    """Return folders with blanks, quotes and commas in their names, and the variables that name them."""
    data, model = tmp_path / "da ta, and 'more'", tmp_path / "mo=del {x}"
    data.mkdir()
    model.mkdir()
    for file in (data / "train.parquet", data / "test.parquet", model / "config.json"):
        file.touch()
    return {"DATA_DIR": str(data), "MODEL_DIR": str(model), "OUTPUT_DIR": str(tmp_path / "out put")}


def baseline(place, *arguments, **variables):
    python, called = fake_python(Path(place["OUTPUT_DIR"]).parent, status=variables.pop("status", 0))
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment = {**kept, **place, "PYTHON": str(python), "VENDOR": "none", **variables}
    environment = {name: value for name, value in environment.items() if value is not None}
    done = subprocess.run(
        ["bash", SCRIPT, *arguments], env=environment, capture_output=True, text=True, timeout=scaled(120), check=False
    )
    return done, called


def composed(arguments, verl=None):
    """Return what verl's own configuration makes of the options; an unknown key is an error there."""
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    # Only verl's YAML is read; importing verl would take ten seconds.
    verl = verl or Path(find_spec("verl").origin).parent
    options = [word for word in arguments[2:] if not word.startswith("hydra.")]
    with initialize_config_dir(config_dir=str(verl / "trainer" / "config"), version_base=None):
        config = compose(config_name="ppo_trainer", overrides=options)
    return OmegaConf.to_container(config, resolve=True)


def test_verl_understands_every_option_and_they_are_the_fields_baseline(place):
    done, called = baseline(place)
    assert done.returncode == 0, done.stderr
    arguments, _ = called()
    assert arguments[:2] == ["-m", "verl.trainer.main_ppo"]
    config = composed(arguments)
    actor, rollout, ref = (config["actor_rollout_ref"][part] for part in ("actor", "rollout", "ref"))
    assert config["algorithm"]["adv_estimator"] == "grpo"
    assert config["data"]["train_files"] == f"{place['DATA_DIR']}/train.parquet"
    assert config["data"]["val_files"] == f"{place['DATA_DIR']}/test.parquet"
    assert config["actor_rollout_ref"]["model"]["path"] == place["MODEL_DIR"]
    assert config["trainer"]["default_local_dir"] == f"{place['OUTPUT_DIR']}/checkpoints"
    assert (config["data"]["train_batch_size"], actor["ppo_mini_batch_size"]) == (64, 16)
    assert (config["data"]["max_prompt_length"], config["data"]["max_response_length"]) == (1024, 1024)
    assert actor["optim"]["lr"] == 1e-6
    assert (actor["use_kl_loss"], actor["kl_loss_coef"], actor["kl_loss_type"]) == (True, 0.001, "low_var_kl")
    assert (rollout["name"], rollout["n"], rollout["tensor_model_parallel_size"]) == ("vllm", 5, 1)
    assert rollout["gpu_memory_utilization"] == 0.3
    assert rollout["calculate_log_probs"] is True
    assert (config["trainer"]["total_epochs"], config["trainer"]["save_freq"], config["trainer"]["test_freq"]) == (
        15,
        20,
        5,
    )
    assert (config["trainer"]["n_gpus_per_node"], config["trainer"]["nnodes"]) == (8, 1)
    assert config["trainer"]["logger"] == ["console", "file"]
    assert (actor["fsdp_config"]["param_offload"], actor["fsdp_config"]["optimizer_offload"]) == (True, True)
    assert (actor["use_dynamic_bsz"], actor["ppo_max_token_len_per_gpu"]) == (True, 24576)
    assert {one["log_prob_max_token_len_per_gpu"] for one in (rollout, ref)} == {24576}


@pytest.mark.slow
@pytest.mark.ci
def test_the_oldest_supported_verl_understands_every_option_too(place, tmp_path):
    folder = tmp_path / "verl-0.9.0"
    done = from_index([uv(), "pip", "install", "--no-deps", "--target", folder, "verl==0.9.0"])
    assert done.returncode == 0, done.stderr
    for vendor in VENDORS:
        done, called = baseline(place, VENDOR=vendor)
        assert done.returncode == 0, done.stderr
        config = composed(called()[0], folder / "verl")
        assert config["actor_rollout_ref"]["rollout"]["n"] == 5


def test_each_variable_of_the_help_changes_an_option(place):
    script = SCRIPT.read_text()
    names = re.findall(r'^: "\${([A-Z_]+):=', script, re.MULTILINE)
    changed = {
        **{"DEVICES": "4", "NODES": "2", "EPOCHS": "3", "TRAIN_BATCH": "32", "MINI_BATCH": "8", "PROMPT_LENGTH": "512"},
        **{"RESPONSE_LENGTH": "256", "LEARNING_RATE": "2e-6", "KL_LOSS_COEF": "0.01", "KL_LOSS_TYPE": "kl"},
        **{"ROLLOUT": "sglang", "ROLLOUT_N": "8", "TENSOR_PARALLEL": "2", "MEMORY_UTILIZATION": "0.5"},
        **{"STRATEGY": "fsdp2", "PARAM_OFFLOAD": "False", "OPTIMIZER_OFFLOAD": "False", "MAX_TOKENS": "8192"},
        **{"SAVE_EVERY": "7", "TEST_EVERY": "9", "LOGGERS": "[console]", "PROJECT": "my pro", "EXPERIMENT": "x, y"},
    }
    assert set(names) == {*changed, "VENDOR", "PYTHON", "OUTPUT_DIR"}
    done, called = baseline(place, **changed)
    assert done.returncode == 0, done.stderr
    arguments, _ = called()
    for name, value in changed.items():
        assert any(word.partition("=")[2].strip("'") == value for word in arguments), name
    config = composed(arguments)
    assert (config["trainer"]["project_name"], config["trainer"]["experiment_name"]) == ("my pro", "x, y")


@pytest.mark.parametrize("vendor", VENDORS)
def test_what_a_chip_needs_comes_from_its_wheel(vendor, place):
    facts = find_wheel(vendor, installed_wheels()).facts
    done, called = baseline(place, VENDOR=vendor)
    assert done.returncode == 0, done.stderr
    arguments, variables = called()
    assert variables["VERL_PLATFORM"] == facts.key
    assert variables.items() >= dict(facts.launch_env).items()
    for key, value in facts.trainer_options:
        assert f"{key}={value}" in arguments
    assert composed(arguments)


def test_what_the_user_says_wins(place):
    name, _ = find_wheel("metax", installed_wheels()).facts.launch_env[0]
    done, called = baseline(place, "trainer.total_epochs=2", "+trainer.extra=1", VENDOR="metax", **{name: "mine"})
    assert done.returncode == 0, done.stderr
    arguments, variables = called()
    assert variables[name] == "mine"
    config = composed(arguments)
    assert (config["trainer"]["total_epochs"], config["trainer"]["extra"]) == (2, 1)


@pytest.mark.parametrize(
    "exported", [{"VERL_FILE_LOGGER_PATH": "/my/metrics.jsonl"}, {"VERL_FILE_LOGGER_ROOT": "/my"}, {}]
)
def test_metrics_are_written_where_the_user_says_or_beside_the_log(exported, place):
    done, called = baseline(place, **exported)
    assert done.returncode == 0, done.stderr
    _, variables = called()
    told = {name: value for name, value in variables.items() if name.startswith("VERL_FILE_LOGGER_")}
    assert told == (exported or {"VERL_FILE_LOGGER_PATH": f"{place['OUTPUT_DIR']}/metrics.jsonl"})


@pytest.mark.parametrize("status", [1, 3, 137])
def test_a_training_that_fails_makes_the_script_fail_though_it_pipes(status, place):
    done, _ = baseline(place, status=status)
    assert done.returncode == status
    log = Path(place["OUTPUT_DIR"]) / "train.log"
    assert log.read_text().endswith(f"baseline: training ended with exit code {status}\n")
    assert read_run(log).ending.exit_code == status


def test_the_log_holds_both_streams_and_ends_with_the_status(place):
    done, _ = baseline(place)
    log = Path(place["OUTPUT_DIR"]) / "train.log"
    assert "a warning" in log.read_text()
    assert read_run(log).columns["critic/rewards/mean"] == {1: 0.25}
    assert read_run(log).ending.exit_code == 0
    assert "verl-hw accept " in done.stdout


def test_a_log_that_cannot_be_written_is_said_before_training(place):
    log = Path(place["OUTPUT_DIR"]) / "train.log"
    log.mkdir(parents=True)
    done, called = baseline(place)
    assert done.returncode == 2
    assert f"the log '{log}' cannot be written" in done.stderr
    with pytest.raises(FileNotFoundError):
        called()


def test_a_dry_run_prints_the_command_and_runs_and_writes_nothing(place, tmp_path):
    done, called = baseline(place, "--dry-run", VENDOR="cambricon")
    assert done.returncode == 0, done.stderr
    words = shlex.split(done.stdout)
    assert words[0] == "env"
    assert "VERL_PLATFORM=cambricon" in words
    assert f"data.train_files='{place['DATA_DIR']}/train.parquet'".replace("'more'", r"\'more\'") in words
    assert not Path(place["OUTPUT_DIR"]).exists()
    with pytest.raises(FileNotFoundError):
        called()


@pytest.mark.parametrize(
    ("changed", "arguments", "message"),
    [
        ({"DATA_DIR": None}, [], "DATA_DIR is not set"),
        ({"MODEL_DIR": None}, [], "MODEL_DIR is not set"),
        ({"DATA_DIR": "/nowhere"}, [], "/nowhere/train.parquet' '/nowhere/test.parquet' is missing"),
        ({"MODEL_DIR": "/nowhere"}, [], "/nowhere/config.json' is missing"),
        (
            {"DATA_DIR": "/no", "MODEL_DIR": "/where"},
            ["--dry-run"],
            "/no/test.parquet' '/where/config.json' is missing",
        ),
        ({"PYTHON": "no-such-python"}, [], "no interpreter 'no-such-python'"),
        ({"PYTHON": "false"}, [], "'false' has no verl or no verl-hw-core: activate the environment"),
        ({"VENDOR": "gcx"}, [], "unknown vendor 'gcx'"),
        ({"OUTPUT_DIR": "/dev/null/out"}, [], "cannot be made"),
        ({}, ["--dryrun"], "unknown argument '--dryrun'"),
    ],
)
def test_what_cannot_start_ends_with_2(changed, arguments, message, place):
    python, _ = fake_python(Path(place["OUTPUT_DIR"]).parent)
    done = subprocess.run(
        ["bash", SCRIPT, *arguments],
        env={
            name: value
            for name, value in {**os.environ, **place, "PYTHON": str(python), "VENDOR": "none", **changed}.items()
            if value is not None
        },
        capture_output=True,
        text=True,
        timeout=scaled(120),
        check=False,
    )
    assert done.returncode == 2
    assert message in done.stderr


def test_without_hardware_and_without_a_name_the_choice_is_the_users(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("VERL_PLATFORM", raising=False)
    monkeypatch.delenv("VERL_HW_SIM", raising=False)
    monkeypatch.setenv("VERL_HW_PROBE_ROOT", str(tmp_path))
    assert main([]) == 2
    assert "Set VENDOR to the key of an installed vendor wheel, or to none" in capsys.readouterr().err
    assert baseline_lines("none") == ["vendor\tverl's own platform"]
