# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
#
# Written by scripts/write_vendor_docs.py from scripts/stacks/intel-newest.json; change that file.
# The stack of the reference plugin's Dockerfile for Intel, with the transformers that verl 0.9.1 takes.
# No image was built from it here; its install lines are those that 'dev.py stack' runs.
#
#   python3 scripts/dev.py build
#   docker build -f docs/dockerfiles/intel-newest.Dockerfile -t verl-hw:intel-newest .

# [C] verl-hardware-plugin 577b1826, docker/intel_gpu/Dockerfile.intel_gpu
ARG IMAGE=intel/deep-learning-essentials:2026.1.0-devel-ubuntu24.04
FROM ${IMAGE}
COPY --from=ghcr.io/astral-sh/uv:0.13.9 /uv /usr/local/bin/uv
RUN apt-get update && apt-get install -y --no-install-recommends g++ && apt-get clean
ENV UV_INDEX=https://download.pytorch.org/whl/xpu UV_INDEX_STRATEGY=unsafe-best-match
ENV VIRTUAL_ENV=/opt/venv PATH=/opt/venv/bin:${PATH}
RUN uv venv --python 3.12 /opt/venv
WORKDIR /opt/verl-hw
COPY dist dist
RUN uv pip install torch==2.13.0 'ray[default]==2.60.0' transformers==5.10.4 tensordict==0.10.0 numpy==2.2.6 verl==0.9.1
RUN uv pip install --find-links dist verl-hw-intel 'verl-hw-tools[demo]' verl-hw-sim
RUN python -c "import verl"
