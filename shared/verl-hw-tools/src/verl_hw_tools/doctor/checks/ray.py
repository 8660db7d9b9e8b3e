# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Ray: installed, its cluster within reach, and every node of one mind."""

import re
from shlex import quote
from typing import Any

from verl_hw_core.detection.lookup import look_up
from verl_hw_core.platform.ray_resources import start_options
from verl_hw_tools.doctor.facts import Facts
from verl_hw_tools.doctor.model import Finding, crash, fail, ok, skip, warn
from verl_hw_tools.doctor.ray_address import ADDRESS_ENVVAR, cluster_to_ask
from verl_hw_tools.doctor.registry import RAY, check
from verl_hw_tools.doctor.stages import Stage
from verl_hw_tools.doctor.versions import installed_version

# A difference in a variable; errors of workers hold "=" too, as in "(pid=17, ip=...)".
_VARIABLE = re.compile(r"(VERL_\w+)=.* there, (.*) here$")
_UNSET = "(unset)"
_NO_CLUSTER = "no Ray cluster was started here and RAY_ADDRESS is not set"


@check("ray.installed", why="verl imports Ray even for fine-tuning on one device")
def installed(_facts: Facts) -> Finding:
    """Ray is installed."""
    if look_up("ray").spec is None:
        return fail("ray is not installed here", expected="ray", mend="pip install 'ray[default]>=2.41'")
    return ok(f"ray {installed_version('ray')}")


@check("ray.cluster", why="a run would wait for a cluster that does not answer, or start a second one", needs=(RAY,))
def cluster(facts: Facts) -> Finding:
    """The Ray cluster answers."""
    where = cluster_to_ask(facts.environ)
    if not where:
        return skip(_NO_CLUSTER)
    stages = facts.ray.stages
    stage = stages.get("connect") or stages.get("import") or stages.get("start")
    if stage is None:
        return skip("Ray was not asked")
    if not stage.went_well:
        # An old file of a cluster that is gone is normal; an address that somebody exported is meant.
        meant = where.startswith(ADDRESS_ENVVAR)
        report = (crash if stage.died else fail) if meant else warn
        return report(
            f"{where}: {stage.error}",
            expected="an answer",
            mend=_mend_of_connection(stage, where),
            details=stage.trace,
        )
    nodes = facts.ray.data("nodes") or ()
    return ok(f"{len(nodes)} nodes: " + "; ".join(_resources(node) for node in nodes))


@check("ray.resource", why="verl places its workers by this resource; without it the run waits for ever", needs=(RAY,))
def resource(facts: Facts) -> Finding:
    """The cluster counts the vendor's devices under a name that verl asks for."""
    nodes = facts.ray.data("nodes")
    if nodes is None or facts.vendor is None:
        return skip(_NO_CLUSTER if nodes is None else "no vendor is judged")
    names = facts.vendor.ray_resources
    total = {name: sum(node["resources"].get(name, 0) for node in nodes) for name in names}
    if not any(total.values()):
        return fail(
            f"no node has {' or '.join(names)}: Ray does not count these devices by itself",
            expected=f"{names[0]} on every node with devices",
            mend=f"ray stop; ray start --head {start_options(names[0], 8)}   # 8: the number of its devices",
        )
    return ok(", ".join(f"{name}: {count:g}" for name, count in total.items() if count))


@check(
    "ray.agreement", why="a node with another version or variable fails alone, or takes another platform", needs=(RAY,)
)
def agreement(facts: Facts) -> Finding:
    """Driver and every node agree on versions, variables and vendor."""
    here, workers = facts.ray.data("here"), facts.ray.data("workers")
    if here is None or workers is None:
        stage = facts.ray.stages.get("workers")
        if stage is None or stage.went_well:
            return skip(_NO_CLUSTER)
        return crash(
            stage.error,
            expected="an answer of every node",
            mend="ray status   # are workers starting?",
            details=stage.trace,
        )
    different = {node[:8]: _differences(here, facts_there) for node, facts_there in workers.items()}
    bad = {node: said for node, said in different.items() if said}
    if bad:
        return fail(
            "; ".join(f"node {node}: {', '.join(said)}" for node, said in bad.items()),
            expected="the same on every node",
            mend=_mend(bad),
        )
    return ok(f"{len(workers)} nodes, vendor {here['vendor'] or 'none'}")


def _mend_of_connection(stage: Stage, where: str) -> str:
    if "InvalidAuthToken" in stage.trace:
        # Ray 2.60: "ray.init()" starts a cluster that wants a token, and other processes do not send theirs unasked.
        return "export RAY_AUTH_MODE=token   # with the cluster's token in ~/.ray/auth_token"
    if where.startswith(ADDRESS_ENVVAR):
        return f"unset {ADDRESS_ENVVAR}   # or: ray start --head"
    return f"rm {where}   # or: ray start --head"


def _differences(here: dict[str, Any], there: dict[str, Any]) -> list[str]:
    if "error" in there:
        return [there["error"]]
    # A wheel that the driver alone lacks counts as well: it takes another platform than its workers.
    versions = [
        (name, there["versions"].get(name, "not installed"), here["versions"].get(name, "not installed"))
        for name in {**here["versions"], **there["versions"]}
    ]
    said = [f"{name} {theirs} there, {ours} here" for name, theirs, ours in versions if theirs != ours]
    said += [
        f"{name}={there['variables'][name] or _UNSET} there, {value or _UNSET} here"
        for name, value in here["variables"].items()
        if there["variables"][name] != value
    ]
    # A head node without devices is normal, another vendor's are not.
    if there["vendor"] and here["vendor"] and there["vendor"] != here["vendor"]:
        said.append(f"it takes {there['vendor']}, the driver {here['vendor']}")
    return said


def _mend(bad: dict[str, list[str]]) -> str:
    found = [match.groups() for said in bad.values() for part in said if (match := _VARIABLE.match(part))]
    if found:
        meant = (f"unset {name}" if value == _UNSET else f"export {name}={quote(value)}" for name, value in found)
        return f"{'; '.join(dict.fromkeys(meant))}   # before 'ray start' on every node, or in runtime_env.env_vars"
    return "install the same versions on every node, and start Ray again"


def _resources(node: dict[str, Any]) -> str:
    return ", ".join(f"{name} {amount:g}" for name, amount in node["resources"].items()) or "no accelerator"
