# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A torch.distributed backend between processes that share no default group.

torch makes process groups only inside the default one, or as the default one. So the backend itself is made, as
torch's ``_new_process_group_helper`` makes it, and kept out of torch's tables (ledger row ``weight-sync-group``).
"""

import datetime
import importlib
import socket
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from verl_hw_core.errors import CollectiveBackendError
from verl_hw_core.weight_sync.control import listen
from verl_hw_core.weight_sync.transfer import HOST_BACKEND


def serve_store(host: str, timeout: float) -> tuple[Any, int]:
    """Open the store through which the ranks' libraries find each other, on one address, and return it and its port."""
    listener = listen(host)
    port = listener.getsockname()[1]
    listener.setblocking(True)
    store = dist.TCPStore(
        host,
        port,
        None,
        True,
        datetime.timedelta(seconds=timeout),
        wait_for_workers=False,
        master_listen_fd=listener.detach(),  # torch would listen on all addresses
    )
    return store, port


def reach_store(host: str, port: int, timeout: float) -> Any:
    """Connect to another rank's store."""
    return dist.TCPStore(host, port, None, False, datetime.timedelta(seconds=timeout), wait_for_workers=False)


def make_backend(name: str, store: Any, rank: int, size: int, timeout: float, group: str, address: str) -> Any:
    """Make the backend ``name``, as in ``torch.distributed.init_process_group``, among ``size`` processes.

    All of them reach the store, where keys go below the group's id. A collective may take ``timeout`` seconds. The
    address is this node's, for gloo.

    Raises:
        CollectiveBackendError: torch does not know the backend.
    """
    store = dist.PrefixStore(f"weight_sync/{group}", store)
    limit = datetime.timedelta(seconds=timeout)
    if name == HOST_BACKEND:
        return _gloo(store, rank, size, limit, address)
    if name in dist.Backend.backend_list and name.upper() not in dist.Backend._plugins:
        return _built_in(name, store, rank, size, limit, group)
    return _plugin(name, store, rank, size, limit, group)


def _gloo(store: Any, rank: int, size: int, limit: datetime.timedelta, address: str) -> Any:
    options = dist.ProcessGroupGloo._Options()
    options._timeout = limit
    options._devices = [dist.ProcessGroupGloo.create_device(hostname=address)]
    return dist.ProcessGroupGloo(store, rank, size, options)


def _built_in(name: str, store: Any, rank: int, size: int, limit: datetime.timedelta, group: str) -> Any:
    maker = getattr(distributed_c10d, f"ProcessGroup{name.upper()}", None)
    if maker is None:
        raise CollectiveBackendError(f"torch {torch.__version__} was built without {name}: {_known()}")
    options = maker.Options()
    options._timeout = limit
    options.global_ranks_in_group = list(range(size))
    options.group_name = group
    return maker(store, rank, size, options)


def _plugin(name: str, store: Any, rank: int, size: int, limit: datetime.timedelta, group: str) -> Any:
    plugins = dist.Backend._plugins
    if name.upper() not in plugins:
        try:
            importlib.import_module(name)  # some libraries register with torch when they are imported
        except ImportError:
            raise CollectiveBackendError(f"torch knows no collective backend {name!r}: {_known()}") from None
    if name.upper() not in plugins:
        raise CollectiveBackendError(f"the module {name!r} registers no backend of its name with torch: {_known()}")
    plugin = plugins[name.upper()]
    if not plugin.extended_api:
        return plugin.creator_fn(store, rank, size, limit)
    options = distributed_c10d._DistributedBackendOptions()
    options.store = store
    options.group_rank = rank
    options.group_size = size
    options.timeout = limit
    options.group_id = group
    options.global_ranks_in_group = list(range(size))
    return plugin.creator_fn(options, None)


def _known() -> str:
    return (
        f"it has {', '.join(sorted(dist.Backend.backend_list))}. Set rollout.checkpoint_engine.backend to one of them"
    )


def own_address(peer_host: str, peer_port: int) -> str:
    """Return the address from which this machine reaches a peer."""
    family = socket.AF_INET6 if ":" in peer_host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((peer_host, peer_port))  # sends nothing
        return str(probe.getsockname()[0])
