# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
#
# Written by scripts/write_vendor_docs.py from scripts/stacks/intel-oldest.json; change that file.
# The oldest torch with a native average in xccl.
# No image was built from it here; its install lines are those that 'dev.py stack' runs.
#
#   python3 scripts/dev.py build
#   docker build -f docs/dockerfiles/intel-oldest.Dockerfile -t verl-hw:intel-oldest .

# [L] verl 809ef8c8, docker/intel_gpu/Dockerfile.intel_gpu, which has a newer torch
ARG IMAGE=intel/deep-learning-essentials:2025.3.2-0-devel-ubuntu24.04
FROM ${IMAGE}
COPY --from=ghcr.io/astral-sh/uv:0.13.9 /uv /usr/local/bin/uv
RUN apt-get update && apt-get install -y --no-install-recommends g++ && apt-get clean
ENV UV_INDEX=https://download.pytorch.org/whl/xpu UV_INDEX_STRATEGY=unsafe-best-match
ENV VIRTUAL_ENV=/opt/venv PATH=/opt/venv/bin:${PATH}
RUN uv venv --python 3.12 /opt/venv
WORKDIR /opt/verl-hw
COPY dist dist
RUN uv pip install torch==2.8.0 'ray[default]==2.47.1' transformers==5.5.3 tensordict==0.10.0 numpy==2.1.3 verl==0.9.1
RUN uv pip install --find-links dist verl-hw-intel 'verl-hw-tools[demo]' verl-hw-sim
RUN python -c "import verl"
