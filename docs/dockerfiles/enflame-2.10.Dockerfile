# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
#
# Written by scripts/write_vendor_docs.py from scripts/stacks/enflame-2.10.json; change that file.
# Enflame's torch_gcu 2.10, with verl 0.9.0.
# No image was built from it here; its install lines are those that 'dev.py stack' runs.
#
#   python3 scripts/dev.py build
#   docker build -f docs/dockerfiles/enflame-2.10.Dockerfile -t verl-hw:enflame-2.10 .

# Fill in: Enflame's TopsRider image with torch 2.10.0 and torch_gcu, from Enflame's engineers.
# [C] verl-hardware-plugin 013d1c10, docs/user_guide_enflame/install_guidance.md: the image is given on request
ARG IMAGE
FROM ${IMAGE}
COPY --from=ghcr.io/astral-sh/uv:0.13.9 /uv /usr/local/bin/uv
ENV UV_SYSTEM_PYTHON=1 UV_BREAK_SYSTEM_PACKAGES=1
WORKDIR /opt/verl-hw
COPY dist dist
# The image's own torch, which stays: uv finds its requirement met.
RUN python -c "import torch; assert torch.__version__.split('+')[0] == '2.10.0', torch.__version__"
RUN uv pip install torch==2.10.0 'ray[default]==2.51.1' transformers==5.9.0 tensordict==0.10.0 numpy==2.2.6 verl==0.9.0
RUN uv pip install --find-links dist verl-hw-enflame 'verl-hw-tools[demo]'
RUN python -c "import verl"
