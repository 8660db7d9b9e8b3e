# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Sphinx settings. Build with ``python3 scripts/dev.py docs``, for which every warning is an error."""

project = "verl-hw"
author = "The verl-hw authors"
project_copyright = f"2026 {author}"

extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["fragments/*"]  # parts of the guides: scripts/write_vendor_docs.py puts them there

nitpicky = True
myst_heading_anchors = 4  # links to headings, which are checked
suppress_warnings: list[str] = []

html_theme = "furo"
html_title = "verl-hw"
html_copy_source = False
copybutton_exclude = ".linenos, .gp, .go"

linkcheck_timeout = 15
linkcheck_retries = 2
