# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
#
# Written by scripts/write_vendor_docs.py from scripts/stacks/newest.json; change that file.
# The newest versions that verl 0.9.1 takes, as an install without pins gets them.
# No image was built from it here; its install lines are those that 'dev.py stack' runs.
#
#   python3 scripts/dev.py build
#   docker build -f docs/dockerfiles/newest.Dockerfile -t verl-hw:newest .

# [C] Docker's official image of Python; no vendor's
ARG IMAGE=python:3.12-bookworm
FROM ${IMAGE}
COPY --from=ghcr.io/astral-sh/uv:0.13.9 /uv /usr/local/bin/uv
ENV UV_SYSTEM_PYTHON=1 UV_BREAK_SYSTEM_PACKAGES=1
WORKDIR /opt/verl-hw
COPY dist dist
RUN uv pip install torch==2.15.0 'ray[default]==2.60.0' transformers==5.10.4 tensordict==0.10.0 numpy==2.5.5 verl==0.9.1 megatron-core==0.16.1 mbridge==0.15.1 einops==0.8.2
RUN uv pip install --find-links dist verl-hw-cambricon 'verl-hw-tools[demo]' verl-hw-sim
RUN python -c "import verl"
