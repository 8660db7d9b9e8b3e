# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A bug report shows what matters, and neither secrets nor names."""

import socket
from pathlib import Path

import pytest

from verl_hw_core.facts.hardware import HardwareSpec
from verl_hw_tools.doctor import redaction
from verl_hw_tools.doctor.redaction import HIDDEN, Redactor

ENVIRONMENT = {
    "HOME": "/data/people/jdoe42",
    "USER": "jdoe42",
    "WANDB_API_KEY": "0123456789abcdef0123456789abcdef01234567",
    "MY_PASSWORD": "correct horse",
    "VERL_PLATFORM": "acme",
    "RAY_TOKEN": "abcdefgh1234",
    "VLLM_API_KEY": "sk-verysecretindeed",
    "TOKENIZERS_PARALLELISM": "false",
    "ACME_VISIBLE_DEVICES": "0,1",
    "ACME_OTHER": "x",
    "EDITOR": "vi",
    "PYTHONPATH": "/data/people/jdoe42/code:/home/somebody/lib:/opt/x",  # check-tree: allow (invented)
    "RAY_ADDRESS": "10.11.12.13:6379",
    "LD_LIBRARY_PATH": "/opt/correct horse/lib:/scratch/jdoe42/lib",
    "https_proxy": "http://me:s3cr%2Ft%40x@proxy.example:8080",
}
SPEC = HardwareSpec(
    key="acme",
    display_name="Acme",
    distribution="verl-hw-acme",
    device_name="acmedev",
    ccl_backend="accl",
    visible_devices_envvar="ACME_VISIBLE_DEVICES",
    ray_resources=("GPU",),
)


@pytest.fixture
def redactor(monkeypatch: pytest.MonkeyPatch) -> Redactor:
    monkeypatch.setattr(socket, "gethostname", lambda: "node17.cluster.example")
    monkeypatch.setattr(redaction.getpass, "getuser", lambda: "jdoe42")
    monkeypatch.setenv("HOME", ENVIRONMENT["HOME"])
    return Redactor(ENVIRONMENT)


def test_only_what_matters_is_shown(redactor: Redactor) -> None:
    shown = redactor.variables(ENVIRONMENT, (SPEC,))
    assert set(shown) == {
        *("VERL_PLATFORM", "RAY_TOKEN", "VLLM_API_KEY", "TOKENIZERS_PARALLELISM", "ACME_VISIBLE_DEVICES", "PYTHONPATH"),
        *("RAY_ADDRESS", "LD_LIBRARY_PATH"),
    }
    assert shown["RAY_TOKEN"] == shown["VLLM_API_KEY"] == HIDDEN
    assert shown["TOKENIZERS_PARALLELISM"] == "false"
    assert shown["PYTHONPATH"] == "<home>/code:/home/<user>/lib:/opt/x"  # check-tree: allow (invented)
    assert shown["RAY_ADDRESS"] == "<address>:6379"
    assert shown["LD_LIBRARY_PATH"] == f"/opt/{HIDDEN}/lib:/scratch/<user>/lib"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see /data/people/jdoe42/x and /data/people/jdoe42", "see <home>/x and <home>"),
        ("/data/people/jdoe423/x", "/data/people/jdoe423/x"),
        ("on NODE17: no driver", "on <host>: no driver"),
        ("https://me:pass@host.example/x", f"https://{HIDDEN}@host.example/x"),
        ("hf_AbCdEfGhIjKlMn", HIDDEN),
        ("key 0123456789abcdef0123456789abcdef01234567", f"key {HIDDEN}"),
        ("127.0.0.1:80 and 192.168.1.7", "127.0.0.1:80 and <address>"),
        ("torch 2.10.0+acme3.8.0.7", "torch 2.10.0+acme3.8.0.7"),
        ("the password is correct horse", f"the password is {HIDDEN}"),
        ("on node17.cluster.example and node18.cluster.example", "on <host>.<domain> and node18.<domain>"),
        ("http://me:p@ss/w:rd@proxy.example:8080", f"http://{HIDDEN}@proxy.example:8080"),
        ("http://proxy.example:8080/x?mail=me@y", "http://proxy.example:8080/x?mail=me@y"),
        ("Proxy-Authorization: Basic bWU6bGV0bWVpbg==", f"Proxy-Authorization: Basic {HIDDEN}"),
        ("sent 'Bearer abcdef123456'", f"sent 'Bearer {HIDDEN}'"),
        ("GET /x?api_key=abcdefgh&y=1", f"GET /x?api_key={HIDDEN}&y=1"),
        ('{"password": "letmein-please"}', f'{{"password": "{HIDDEN}"}}'),
        ("407 for proxy user with s3cr/t@x", f"407 for proxy user with {HIDDEN}"),
        ("[2001:db8::1]:6379, fe80:0:0:0:0:0:0:1 and ::1", "[<address>]:6379, <address> and ::1"),
        ("c10::add, 0000:3b:00.0, 12:34:56, at::add", "c10::add, 0000:3b:00.0, 12:34:56, at::add"),
        (
            "InvalidAuthToken: token is missing; max_tokens=4096000000",
            "InvalidAuthToken: token is missing; max_tokens=4096000000",
        ),
        ("bearer authentication is basic configuration", "bearer authentication is basic configuration"),
    ],
)
def test_texts(redactor: Redactor, text: str, expected: str) -> None:
    assert redactor.text(text) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ONEAPI_DEVICE_SELECTOR", "level_zero:1"),
        ("ONEAPI_ROOT", "/opt/intel/oneapi"),
        ("RAY_AUTH_MODE", "disabled"),
        ("GIT_AUTHOR_NAME", "somebody"),
        ("VLLM_MAX_NUM_BATCHED_TOKENS", "131072"),
        ("SSH_AUTH_SOCK", "/tmp"),
        ("PWD", "/nowhere/at/all"),
    ],
)
def test_what_only_sounds_like_a_secret_is_left_in_texts(name: str, value: str) -> None:
    assert Redactor({"HOME": "/data/people/x", name: value}).secrets(f"source {value}/x") == f"source {value}/x"


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "MYPASSWORD"),
        *("OPENAI_API", "RAY_REDIS_PASSWORD", "my_token", "SSHPASS", "DB_PASSWD", "SENTRY_DSN", "OPENAIKEY"),
    ],
)
def test_variables_with_secrets(name: str) -> None:
    assert Redactor({name: "wJalrXUtnFEMI/K7MDENG"}).secrets("got wJalrXUtnFEMI/K7MDENG") == f"got {HIDDEN}"


def test_a_user_id_without_a_name_and_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 54321")

    def homeless(_path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(redaction.getpass, "getuser", nobody)
    monkeypatch.setattr(Path, "expanduser", homeless)
    assert Redactor({}).text("no name here") == "no name here"


def test_a_superusers_name_hides_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction.getpass, "getuser", lambda: "root")
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
    monkeypatch.setenv("HOME", "/root")
    home = "/root"
    text = f"{home}/a /opt{home}/b localhost"
    assert Redactor({"HOME": home}).text(text) == f"<home>/a /opt{home}/b localhost"
