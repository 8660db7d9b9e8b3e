# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
#
# Written by scripts/write_vendor_docs.py from scripts/stacks/cuda-2.11.json; change that file.
# A common CUDA image, that of verl's own Dockerfile; a simulated mlu stands for the chip.
# No image was built from it here; its install lines are those that 'dev.py stack' runs.
#
#   python3 scripts/dev.py build
#   docker build -f docs/dockerfiles/cuda-2.11.Dockerfile -t verl-hw:cuda-2.11 .

# [C] verl 01aee6a3, docker/Dockerfile.uv.cu130
ARG IMAGE=nvidia/cuda:13.0.2-devel-ubuntu24.04
FROM ${IMAGE}
COPY --from=ghcr.io/astral-sh/uv:0.13.9 /uv /usr/local/bin/uv
RUN apt-get update && apt-get install -y --no-install-recommends g++ && apt-get clean
ENV VIRTUAL_ENV=/opt/venv PATH=/opt/venv/bin:${PATH}
RUN uv venv --python 3.12 /opt/venv
WORKDIR /opt/verl-hw
COPY dist dist
RUN uv pip install torch==2.11.0 'ray[default]==2.55.1' transformers==5.9.0 tensordict==0.10.0 numpy==2.2.6 verl==0.9.1 megatron-core==0.16.1 mbridge==0.15.1 einops==0.8.2
RUN uv pip install --find-links dist verl-hw-cambricon 'verl-hw-tools[demo]' verl-hw-sim
RUN python -c "import verl"
