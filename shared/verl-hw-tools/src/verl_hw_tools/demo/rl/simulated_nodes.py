# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Run a module as a job on several Ray nodes that are all on this machine, started by Ray's own test cluster.

``python -m verl_hw_tools.demo.rl.simulated_nodes --nodes=2 --cpus=8 --devices=1 MODULE [ARGUMENT ...]``
"""

import argparse
import runpy
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Start the nodes, run the module as the driver on the first one, and end the nodes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, required=True, help="number of nodes")
    parser.add_argument("--cpus", type=int, required=True, help="processors that each node offers")
    parser.add_argument("--devices", type=int, required=True, help="devices that each node offers")
    parser.add_argument("module")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    chosen = parser.parse_args(arguments)

    import ray
    from ray.cluster_utils import Cluster

    resources = {"num_cpus": chosen.cpus, "num_gpus": chosen.devices, "object_store_memory": 256 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**resources, "include_dashboard": False})
    try:
        for _ in range(1, chosen.nodes):
            cluster.add_node(**resources)
        cluster.wait_for_nodes()
        sys.argv = [chosen.module, *chosen.rest, f"+ray_kwargs.ray_init.address={cluster.address}"]
        runpy.run_module(chosen.module, run_name="__main__", alter_sys=True)
    finally:
        ray.shutdown()  # a node that a driver is connected to cannot be ended
        cluster.shutdown()


if __name__ == "__main__":
    main()
