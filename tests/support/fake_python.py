# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""An interpreter for shell scripts under test: writes down how verl's trainer was called, and ends as told.

Everything else is handed to the real interpreter.
"""

import stat
import sys

_SCRIPT = """#!/bin/sh
if [ "$2" != verl.trainer.main_ppo ]; then exec {real} "$@"; fi
printf '%s\\0' "$@" > {record}
env -0 > {record}.env
echo "step:1 - critic/rewards/mean:0.25"
echo "a warning" >&2
exit {status}
"""


def fake_python(folder, status=0):
    """Write the interpreter; return its path and a function that reads the arguments and environment it was given."""
    record = folder / "record"
    script = folder / "python"
    script.write_text(_SCRIPT.format(real=sys.executable, record=record, status=status))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)

    def called():
        arguments = record.read_text().split("\0")[:-1]
        variables = dict(line.partition("=")[::2] for line in (folder / "record.env").read_text().split("\0") if line)
        return arguments, variables

    return script, called
