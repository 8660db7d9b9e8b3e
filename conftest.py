# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What every test relies on, whoever started pytest."""

import signal

pytest_plugins = ["session_plugin"]  # of tests/support


def pytest_configure() -> None:
    """Let signals through: a runner in the background (nohup, cron) leaves them ignored, also in every child."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
