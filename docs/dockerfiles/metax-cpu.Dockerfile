# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
#
# Written by scripts/write_vendor_docs.py from scripts/stacks/metax-cpu.json; change that file.
# A CPU build of torch, on which MetaX's device can be simulated; no image of MetaX.
# No image was built from it here; its install lines are those that 'dev.py stack' runs.
#
#   python3 scripts/dev.py build
#   docker build -f docs/dockerfiles/metax-cpu.Dockerfile -t verl-hw:metax-cpu .

# [C] Docker's official image of Python; no vendor's
ARG IMAGE=python:3.11-bookworm
FROM ${IMAGE}
COPY --from=ghcr.io/astral-sh/uv:0.13.9 /uv /usr/local/bin/uv
ENV UV_INDEX=https://download.pytorch.org/whl/cpu UV_INDEX_STRATEGY=unsafe-best-match
ENV UV_SYSTEM_PYTHON=1 UV_BREAK_SYSTEM_PACKAGES=1
WORKDIR /opt/verl-hw
COPY dist dist
RUN uv pip install torch==2.13.0 'ray[default]==2.60.0' transformers==5.10.4 tensordict==0.10.0 numpy==2.2.6 verl==0.9.1
RUN uv pip install --find-links dist verl-hw-metax 'verl-hw-tools[demo]' verl-hw-sim
RUN python -c "import verl"
