# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What must not leave the machine in a bug report: secrets, and the names of user, home and host."""

import getpass
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path

from verl_hw_core.hardware import HardwareSpec

HIDDEN = "<hidden>"

# Variables whose values a bug report shows. Everything else is left out, whatever its name.
_SHOWN_PREFIXES = (
    "VERL_",
    "RAY_",
    "TORCH",
    "PYTORCH_",
    "NCCL_",
    "OMP_",
    "MKL_",
    "FLAGCX_",
    "VLLM_",
    "SGLANG_",
    "HYDRA_",
)
_SHOWN = frozenset(
    {"USE_FLAGCX", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PATH", "VIRTUAL_ENV", "CONDA_DEFAULT_ENV"}
    | {"LOCAL_RANK", "RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES", "ZE_FLAT_DEVICE_HIERARCHY", "PYTHONHASHSEED"}
    | {"TOKENIZERS_PARALLELISM", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}
)
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|KEY|CREDENTIAL|AUTH|COOKIE|SESSION_ID|API|WEBHOOK|SIGNATURE|DSN", re.IGNORECASE
)
_HARMLESS = frozenset({"TOKENIZERS_PARALLELISM"})
_SECRET_VALUE = re.compile(
    r"\b(?:hf_|gh[pousr]_|github_pat_|glpat-|sk-|xox[abprs]-|AKIA|ASIA|AIza|ya29\.|npm_|pypi-|dckr_pat_)[A-Za-z0-9_\-.]{8,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"  # a JSON web token
    r"|\b[0-9a-fA-F]{32,}\b"
)
_URL_PASSWORD = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s@]+@")
_ADDRESS = re.compile(r"\b(?!127\.|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}\b")
_SHORTEST_NAME = 3


class Redactor:
    """Replaces the secrets and names of this machine in texts."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._names: list[tuple[re.Pattern[str], str]] = []
        homes = {environ.get("HOME", ""), str(Path("~").expanduser())}
        for home in sorted(homes, key=len, reverse=True):
            if len(home.strip("/")) > 0:
                self._names.append(
                    (re.compile(r"(?<![A-Za-z0-9_.-])" + re.escape(home.rstrip("/")) + r"(?![A-Za-z0-9_-])"), "<home>")
                )
        for value, shown in ((_host(), "<host>"), (_user(environ), "<user>")):
            # "root" says nothing, and would be found in half of all paths.
            if len(value) >= _SHORTEST_NAME and value not in ("root", "localhost"):
                found = re.compile(r"(?<![A-Za-z0-9])" + re.escape(value) + r"(?![A-Za-z0-9])", re.IGNORECASE)
                self._names.append((found, shown))
        self._secrets = [
            value for name, value in environ.items() if _is_secret(name) and len(value) >= 2 * _SHORTEST_NAME
        ]

    def secrets(self, text: str) -> str:
        """Return a text without secrets; names and paths stay, so that what is to be typed can be typed."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        text = _URL_PASSWORD.sub(rf"\g<scheme>{HIDDEN}@", text)
        return _SECRET_VALUE.sub(HIDDEN, text)

    def text(self, text: str) -> str:
        """Return a text without secrets and names."""
        text = self.secrets(text)
        for pattern, shown in self._names:
            text = pattern.sub(shown, text)
        text = re.sub(r"(?<![A-Za-z0-9])/(home|Users)/(?!<)[^/\s:,;'\"]+", r"/\1/<user>", text)
        return _ADDRESS.sub("<address>", text)

    def variables(self, environ: Mapping[str, str], specs: tuple[HardwareSpec, ...]) -> dict[str, str]:
        """Return the variables that matter to verl, by an allow-list; the value of a secret is hidden."""
        theirs = {name for spec in specs for name in _names_of(spec)}
        wanted = {name for name in environ if name in _SHOWN or name in theirs or name.startswith(_SHOWN_PREFIXES)}
        return {name: HIDDEN if _is_secret(name) else self.text(environ[name]) for name in sorted(wanted)}


def _names_of(spec: HardwareSpec) -> tuple[str, ...]:
    return (
        spec.visible_devices_envvar,
        *spec.overriding_visible_envvars,
        *spec.filtering_envvars,
        *spec.ray_noset_envvars,
        *(name for name, _ in (*spec.rollout_env, *spec.launch_env)),
    )


def _is_secret(name: str) -> bool:
    return bool(_SECRET_NAME.search(name)) and name not in _HARMLESS


def _host() -> str:
    return socket.gethostname().partition(".")[0]


def _user(environ: Mapping[str, str]) -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user id without a name
        return environ.get("USER", "")
