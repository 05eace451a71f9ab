"""A profile for tests.  Rank programs take it, too: it loads no Pytest."""

from typing import Any

from collwise.profiles.fingerprint import Fingerprint
from collwise.profiles.profile import Profile
from collwise.profiles.records import MeasuredSize, Provenance, RaceResult


def example(mpi_library: str = "Test MPI 1.0") -> Profile:
    """A profile of a machine that is not this one: t0 = 1 µs, λ = 3 at every size."""

    def point(nbytes: int) -> MeasuredSize:
        return MeasuredSize(
            nbytes=nbytes,
            mode="nonblocking",
            t0_s=1e-6,
            lam=3.0,
            t0_interval_s=(0.9e-6, 1.1e-6),
            lam_interval=(2.9, 3.1),
            t0_experiments_s=(1e-6, 1e-6),
            lam_experiments=(3.0, 3.0),
            disagreement=0.0,
            repetitions=100,
            segment=0,
            verdict="stable",
        )

    return Profile(
        verdict="stable",
        fingerprint=Fingerprint(
            cpu_model="Test CPU",
            architecture="x86_64",
            cores_per_node=8,
            operating_system="Linux",
            mpi_library=mpi_library,
            layout="one node",
        ),
        provenance=Provenance(
            created="2025-01-02T03:04:05+00:00",
            collwise="0.1.0",
            python="3.11.7",
            mpi4py="4.1.2",
            system="Linux",
            hosts={"elsewhere": 4},
            ranks=4,
            notes=(),
        ),
        points=(point(64), point(4096)),
    )


def won_race(**changes: Any) -> RaceResult:
    """A race of blocking broadcasts that a chain won, twice as fast as the library's own."""
    usual: dict[str, Any] = {
        "collective": "broadcast", "form": "blocking", "ranks": 4, "nbytes": 1024, "root": 0,
        "algorithm": "broadcast/chain", "settings": {}, "ours_s": 1e-6, "library_s": 2e-6,
        "speedup_low": 1.9, "speedup_high": 2.1, "decision": "collwise",
    }  # fmt: skip
    return RaceResult(**(usual | changes))
