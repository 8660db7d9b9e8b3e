# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
#
# Written by scripts/write_vendor_docs.py from scripts/stacks/cambricon-2.9.json; change that file.
# Cambricon's image with torch 2.9, as vllm-mlu and the reference plugin's guide describe it.
# No image was built from it here; its install lines are those that 'dev.py stack' runs.
#
#   python3 scripts/dev.py build
#   docker build -f docs/dockerfiles/cambricon-2.9.Dockerfile -t verl-hw:cambricon-2.9 .

# Fill in: Cambricon's PyTorch image with torch 2.9.1, from Cambricon's engineers.
# [C] verl-hardware-plugin 9fc0d31c, docs/accelerators/mlu/install_guidance.md: the image is given on request; environment in it: vllm-mlu 208b86f7
ARG IMAGE
FROM ${IMAGE}
COPY --from=ghcr.io/astral-sh/uv:0.13.9 /uv /usr/local/bin/uv
ENV VIRTUAL_ENV=/torch/venv3/pytorch_infer PATH=/torch/venv3/pytorch_infer/bin:${PATH}
WORKDIR /opt/verl-hw
COPY dist dist
# The image's own torch, which stays: uv finds its requirement met.
RUN python -c "import torch; assert torch.__version__.split('+')[0] == '2.9.1', torch.__version__"
RUN uv pip install torch==2.9.1 'ray[default]==2.51.1' transformers==5.5.3 tensordict==0.10.0 verl==0.9.1
RUN uv pip install --find-links dist verl-hw-cambricon 'verl-hw-tools[demo]'
RUN uv pip install --no-deps numpy==1.26.4
RUN python -c "import verl"
