# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What to type after an import that failed, from the text of its error."""

import re

# Modules whose distribution has another name.
_DISTRIBUTIONS = {"PIL": "pillow", "cv2": "opencv-python", "yaml": "pyyaml", "sklearn": "scikit-learn"}
_MODULE = re.compile(r"No module named '(?P<module>[\w.]+)'")
_LIBRARY = re.compile(r"(?P<library>[\w.+-]+\.so[\w.]*): cannot open shared object file")


def mend_of_import(error: str) -> str | None:
    """Return the line that mends a missing module or a missing library; None for any other error.

    Modules are installed without their requirements: with them, pip may replace the vendor's torch.
    """
    module = _MODULE.search(error)
    if module is not None:
        package = module["module"].partition(".")[0]
        return f"pip install --no-deps {_DISTRIBUTIONS.get(package, package)}   # what provides {module['module']}"
    library = _LIBRARY.search(error)
    if library is not None:
        return f"ldconfig -p | grep {library['library']}   # if empty: source the SDK's script, or repair the driver"
    return None
