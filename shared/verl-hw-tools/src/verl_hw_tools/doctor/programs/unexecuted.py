# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A package whose own file is not executed, so that a module in it costs no more than itself."""

import sys
from importlib.util import find_spec, module_from_spec


def leave_out(package: str) -> None:
    """Put a package into ``sys.modules`` without running it; its submodules can be imported all the same.

    verl's package imports Ray, transformers and more; a vendor wheel's registers the wheel with verl. A package that is
    not installed, or has been imported, is left alone.
    """
    spec = None if package in sys.modules else find_spec(package)
    if spec is not None:
        sys.modules[package] = module_from_spec(spec)
