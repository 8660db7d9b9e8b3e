# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What to type after an import that failed, from the text of its error."""

import re

from verl_hw_core.detection.lookup import look_up

# Modules whose distribution has another name.
_DISTRIBUTIONS = {
    **{"PIL": "pillow", "cv2": "opencv-python", "yaml": "pyyaml", "sklearn": "scikit-learn", "hydra": "hydra-core"},
    **{"zmq": "pyzmq", "grpc": "grpcio", "dateutil": "python-dateutil", "dotenv": "python-dotenv", "attr": "attrs"},
    **{"verl": "'verl>=0.9'", "google": "protobuf", "megatron": "megatron-core"},
}
# An index has these for NVIDIA's devices only, or under a name that anybody can take: the vendor brings its own.
_OF_THE_VENDOR = (
    *("torch", "torchvision", "torchaudio", "triton", "vllm", "sglang", "sgl_kernel", "flash_attn", "xformers"),
    *("transformer_engine", "apex", "cupy", "intel_extension_for_pytorch", "pymxsml"),
)
_MODULE = re.compile(r"No module named '(?P<module>[\w.]+)'")
_LIBRARY = re.compile(r"(?P<library>[\w.+-]+\.so[\w.]*): cannot open shared object file")


def missing_module(error: str) -> str | None:
    """Return the module that an error says is missing, or None."""
    found = _MODULE.search(error)
    return None if found is None else found["module"]


def mend_of_import(error: str) -> str | None:
    """Return the line that mends a missing module, or a library that is missing or of another build; else None.

    Modules are installed without their requirements: with them, pip may replace the vendor's torch.
    """
    module = missing_module(error)
    if module is not None:
        return _mend_of_module(module)
    if "undefined symbol" in error:
        return "use the vendor's image, or install with pip install --no-deps the torch that this library was built for"
    library = _LIBRARY.search(error)
    if library is not None:
        return f"ldconfig -p | grep {library['library']}   # if empty: source the SDK's script, or repair the driver"
    return None


def _mend_of_module(module: str) -> str:
    package = module.partition(".")[0]
    if package in _OF_THE_VENDOR or package.startswith("torch_"):
        return f"use the vendor's image, or install the vendor's own {package} with pip install --no-deps <its wheel>"
    distribution = _DISTRIBUTIONS.get(package, package)
    if package.startswith("verl_hw_"):
        return f"pip install --force-reinstall --no-deps {package.replace('_', '-')}"
    # What is there already would be left as it is, and lacks the module.
    there = "--upgrade " if "." in module and look_up(package).spec is not None else ""
    return f"pip install --no-deps {there}{distribution}   # what provides {module}"
