# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m verl_hw_tools.doctor.programs.ray_cluster FOLDER DEADLINE``: ask the running cluster and its nodes."""

import sys
from pathlib import Path
from typing import Any

from verl_hw_tools.doctor.programs.node_facts import node_facts
from verl_hw_tools.doctor.stages import Stages


def main(folder: Path, deadline: float) -> None:
    """Connect, read the nodes, and run one small task on each."""
    stages = Stages(folder, deadline)
    # Apart from the connection: on a cold disk the import takes its time, and is no fault of the cluster.
    if stages.attempt("import", _import) and stages.attempt("connect", _connect):
        stages.attempt("nodes", _nodes)
        stages.attempt("here", node_facts)
        stages.attempt("workers", lambda: _workers(deadline))


def _import() -> str:
    import ray

    return str(ray.__version__)


def _connect() -> None:
    import ray

    # RAY_ADDRESS where it is set, else the cluster of this node; never a new one.
    ray.init(address="auto", logging_level="ERROR", log_to_driver=False)


def _nodes() -> list[dict[str, Any]]:
    import ray

    wanted = ("memory", "object_store_memory", "CPU")
    return [
        {
            "id": node["NodeID"],
            "resources": {
                name: amount
                for name, amount in node["Resources"].items()
                if not name.startswith("node:") and name not in wanted
            },
        }
        for node in ray.nodes()
        if node["Alive"]
    ]


def _workers(deadline: float) -> dict[str, Any]:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task = ray.remote(num_cpus=0, max_retries=0)(node_facts)
    pending = {
        node["id"]: task.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node["id"], soft=False)
        ).remote()
        for node in _nodes()
    }
    ready, _ = ray.wait(list(pending.values()), num_returns=len(pending), timeout=deadline * 0.7)
    found: dict[str, Any] = {}
    for node, reference in pending.items():
        if reference not in ready:
            found[node] = {"error": "no answer in time: no worker could be started there"}
            continue
        try:
            found[node] = ray.get(reference)
        except Exception as error:  # noqa: BLE001 - whatever the worker's installation raises is the answer
            found[node] = {"error": f"{type(error).__name__}: {error}".strip()[-600:]}
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
