"""A cluster of emulated hosts on one Linux machine: real MPI programs over real TCP.

    with collwise.lab.Cluster(hosts=16, latency="5ms", rate="10mbit") as cluster:
        cluster.run(["python", "my_program.py"], ranks=16)

Every host is a set of Linux namespaces with a TUN device; a user-space switch carries packets.
Reading order: `network` (the description), `link_model` (when a packet arrives: pure arithmetic),
`addresses`, `kernel` and `hosts` (system calls, namespaces), `carrier` and `switch` (packets),
`supervisor` (the process that owns them all) and `control_messages` (what a lab asks of it),
`mpi_launch` and `cluster` (what users call), `lab_report` (how punctual the switch was).
`requirements` says what a machine lacks, and `poll_shim` lets waiting ranks sleep.

Nothing may outlive a lab, which `tests/lab/test_traces.py` checks.
"""

from collwise.lab.cluster import Cluster
from collwise.lab.lab_report import Report
from collwise.lab.network import Network

__all__ = ["Cluster", "Network", "Report"]
