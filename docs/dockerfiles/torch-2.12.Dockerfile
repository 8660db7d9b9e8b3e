# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
#
# Written by scripts/write_vendor_docs.py from scripts/stacks/torch-2.12.json; change that file.
# torch 2.12, which no image above has, on the Python of this repository's lock.
# No image was built from it here; its install lines are those that 'dev.py stack' runs.
#
#   python3 scripts/dev.py build
#   docker build -f docs/dockerfiles/torch-2.12.Dockerfile -t verl-hw:torch-2.12 .

# [C] Docker's official image of Python; no vendor's
ARG IMAGE=python:3.11-bookworm
FROM ${IMAGE}
COPY --from=ghcr.io/astral-sh/uv:0.13.9 /uv /usr/local/bin/uv
ENV UV_SYSTEM_PYTHON=1 UV_BREAK_SYSTEM_PACKAGES=1
WORKDIR /opt/verl-hw
COPY dist dist
RUN uv pip install torch==2.12.1 'ray[default]==2.57.1' transformers==5.10.4 tensordict==0.10.0 numpy==2.2.6 verl==0.9.1
RUN uv pip install --find-links dist verl-hw-cambricon 'verl-hw-tools[demo]' verl-hw-sim
RUN python -c "import verl"
