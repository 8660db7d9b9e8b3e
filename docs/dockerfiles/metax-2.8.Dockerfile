# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
#
# Written by scripts/write_vendor_docs.py from scripts/stacks/metax-2.8.json; change that file.
# MetaX's verl image with torch 2.8, its verl 0.7.1 replaced.
# No image was built from it here; its install lines are those that 'dev.py stack' runs.
#
#   python3 scripts/dev.py build
#   docker build -f docs/dockerfiles/metax-2.8.Dockerfile -t verl-hw:metax-2.8 .

# Fill in: MetaX's verl:0.7.1-maca.ai3.5.3.3-torch2.8-py310-ubuntu22.04-amd64.
# [C] verl-hardware-plugin a7f2d792, docs/user_guide_metax/install_guidance.md: the pull command is on developer.metax-tech.com, after login
ARG IMAGE
FROM ${IMAGE}
COPY --from=ghcr.io/astral-sh/uv:0.13.9 /uv /usr/local/bin/uv
ENV UV_SYSTEM_PYTHON=1 UV_BREAK_SYSTEM_PACKAGES=1
WORKDIR /opt/verl-hw
COPY dist dist
# The image's own torch, which stays: uv finds its requirement met.
RUN python -c "import torch; assert torch.__version__.split('+')[0] == '2.8.0', torch.__version__"
RUN uv pip install torch==2.8.0 'ray[default]==2.47.1' transformers==5.5.3 tensordict==0.10.0 numpy==2.2.6 verl==0.9.1
RUN uv pip install --find-links dist verl-hw-metax 'verl-hw-tools[demo]'
RUN python -c "import verl"
