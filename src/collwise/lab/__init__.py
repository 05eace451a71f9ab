"""A cluster of emulated hosts on one Linux machine: real MPI programs over real TCP.

    with collwise.lab.Cluster(hosts=16, latency="5ms", rate="10mbit") as cluster:
        cluster.run(["python", "my_program.py"], ranks=16)

Reading order: `units` and `network` (what is asked for), `wires` (when a packet arrives: pure),
`kernel`, `hosts`, `switch` (namespaces, devices, packets), `keeper` (the process that owns them
all), `cluster` and `launching` (what users call), `report` (how good it was).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collwise.lab.cluster import Cluster
    from collwise.lab.lab_report import Report
    from collwise.lab.network import Network

_HOME = {
    "Cluster": "collwise.lab.cluster",
    "Network": "collwise.lab.network",
    "Report": "collwise.lab.lab_report",
}

__all__ = ["Cluster", "Network", "Report"]


def __getattr__(name: str) -> Any:
    # The keeper imports this package and must start fast: nothing is loaded before it is used.
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
