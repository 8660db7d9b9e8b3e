# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What must not leave the machine in a bug report: secrets, and the names of user, home and host."""

import getpass
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from verl_hw_core.facts.hardware import HardwareSpec

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
# Whole words, so that ONEAPI_ROOT is not taken for an API, and GIT_AUTHOR_NAME not for an authorisation.
_SECRET_NAME = re.compile(
    r"(?:TOKENS?|SECRETS?|PASSW(?:OR)?D|PASSPHRASE|KEYS?|CREDENTIALS?|COOKIES?|WEBHOOKS?|SIGNATURE)(?:_|$)"
    r"|(?:^|_)(?:API|AUTH|AUTHORIZATION|(?:SSH)?PASS|PWD|DSN|SESSION_ID)(?:_|$)",
    re.IGNORECASE,
)
_HARMLESS = frozenset({"RAY_AUTH_MODE", "PWD"})
_SECRET_VALUE = re.compile(
    r"\b(?:hf_|gh[pousr]_|github_pat_|glpat-|sk-|xox[abprs]-|AKIA|ASIA|AIza|ya29\.|npm_|pypi-|dckr_pat_)[A-Za-z0-9_\-.]{8,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"  # a JSON web token
    r"|\b[0-9a-fA-F]{32,}\b"
)
# As in "Authorization: Basic abc", "Bearer abc1", "?api_key=abc" and '"password": "abc"'.
_NAMED_SECRET = re.compile(
    r"(?P<name>authorization[\"']?[:=] ?[\"']?(?:[a-z]+ )?|\bbearer (?=\S*\d)"
    r"|(?:token|secret|passw(?:or)?d|api_?key|access_?key)(?:=|[\"']: ?)[\"']?)(?P<value>[^\s\"'&;,)]{8,})",
    re.IGNORECASE,
)
# A password may hold "/" and "@" as they are: where a ":" comes first that begins no port, all up to the last "@" goes.
_URL_PASSWORD = re.compile(
    r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*://)(?:[^/\s:@]*:(?!\d{1,5}/)(?P<password>[^\s\"'<>|]*)|[^/\s@]+)@"
)
_ADDRESS = re.compile(
    r"\b(?!127\.|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}\b"
    r"|(?<![\w:.])(?!c10)(?:(?:[0-9a-fA-F]{1,4}:){7}|(?:[0-9a-fA-F]{1,4}:){1,6}(?::[0-9a-fA-F]{1,4}){0,5}:)"
    r"[0-9a-fA-F]{1,4}(?![\w:])"
)
_SHORTEST_NAME = 3


class Redactor:
    """Replaces the secrets and names of this machine in texts."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._names: list[tuple[re.Pattern[str], str]] = []
        for home in sorted({environ.get("HOME", ""), _home()}, key=len, reverse=True):
            if len(home.strip("/")) > 0:
                self._names.append(
                    (re.compile(r"(?<![A-Za-z0-9_.-])" + re.escape(home.rstrip("/")) + r"(?![A-Za-z0-9_-])"), "<home>")
                )
        host, _, domain = socket.gethostname().partition(".")
        for value, shown in ((host, "<host>"), (domain, "<domain>"), (_user(environ), "<user>")):
            # "root" says nothing, and would be found in half of all paths.
            if len(value) >= _SHORTEST_NAME and value not in ("root", "localhost"):
                found = re.compile(r"(?<![A-Za-z0-9])" + re.escape(value) + r"(?![A-Za-z0-9])", re.IGNORECASE)
                self._names.append((found, shown))
        self._secrets = sorted(_secret_values(environ), key=len, reverse=True)

    def secrets(self, text: str) -> str:
        """Return a text without secrets; names and paths stay, so that what is to be typed can be typed."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        text = _URL_PASSWORD.sub(rf"\g<scheme>{HIDDEN}@", text)
        text = _NAMED_SECRET.sub(rf"\g<name>{HIDDEN}", text)
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


def _secret_values(environ: Mapping[str, str]) -> set[str]:
    """Values that no text may show: of variables with such a name, and passwords in addresses, as of a proxy."""
    found = {value for name, value in environ.items() if _is_secret(name) and not _says_nothing(value)}
    for value in environ.values():
        for password in (match["password"] for match in _URL_PASSWORD.finditer(value) if match["password"]):
            found |= {password, unquote(password)}
    return {value for value in found if len(value) >= 2 * _SHORTEST_NAME}


def _says_nothing(value: str) -> bool:
    """A number, as a limit of tokens, or the place of a socket or a file: hidden everywhere, it would spoil texts."""
    try:
        return value.isdecimal() or (value.startswith("/") and Path(value).exists())
    except (OSError, ValueError):  # too long for a path, or not for us to look at
        return False


def _home() -> str:
    try:
        return str(Path("~").expanduser())
    except RuntimeError:  # a container's user id without a name, and HOME is not set
        return ""


def _user(environ: Mapping[str, str]) -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user id without a name
        return environ.get("USER", "")
