"""A measured machine that is made up.  Rank programs take it, too: it loads no Pytest."""

from collections.abc import Iterable
from typing import Any

import msgspec

from collwise.profiles.fingerprint import Fingerprint
from collwise.profiles.profile import Profile
from collwise.profiles.records import (
    MODES,
    MeasuredSize,
    Measurements,
    MedianTime,
    Mode,
    Provenance,
    RaceResult,
)

SIZES = (8, 512, 4096, 65536)
FINGERPRINT = Fingerprint(
    cpu_model="Test CPU",
    architecture="x86_64",
    cores_per_node=16,
    operating_system="Linux",
    mpi_library="MPICH 5.0.2",
    layout="one node",
)
PROVENANCE = Provenance(
    created="2025-01-02T03:04:05+00:00",
    collwise="0.1.0",
    python="3.11.7",
    mpi4py="4.1.2",
    system="Linux-6.1",
    hosts={"node1": 5},
    command="collwise tune -n 5",
    ranks=5,
    budget_s=10.0,
    elapsed_s=9.5,
)


def point(
    nbytes: int, mode: Mode = "nonblocking", lam: float = 1.5, **changes: Any
) -> MeasuredSize:
    """A size whose t0 and λ are known well, unless `changes` say otherwise."""
    t0_s = changes.pop("t0_s", (1 if mode == "nonblocking" else 1.2) * (1e-6 + nbytes * 1e-10))
    fields: dict[str, Any] = {
        "nbytes": nbytes,
        "mode": mode,
        "t0_s": t0_s,
        "lam": lam,
        "t0_interval_s": (0.9 * t0_s, 1.1 * t0_s),
        "lam_interval": (0.95 * lam, 1.05 * lam),
        "t0_experiments_s": (0.98 * t0_s, 1.02 * t0_s),
        "lam_experiments": (0.98 * lam, 1.02 * lam),
        "disagreement": 0.04,
        "repetitions": 20,
        "segment": 0 if nbytes <= 4096 else 1,
        "verdict": "stable",
    }
    return MeasuredSize(**(fields | changes))


def profile(
    points: Iterable[MeasuredSize] | None = None, verdict: str = "stable", **changes: Any
) -> Profile:
    """A profile.   changes: fields of it, or of its measurements."""
    medians = [
        MedianTime(
            nbytes=nbytes,
            mode="nonblocking",
            experiment=1 if experiment == 1 else 2,
            k=k,
            median_s=(experiment * (k - 1) + 3) * 1e-6,
            interval_s=None if k == 4 else (2e-6 * k, 4e-6 * k),
            repetitions=7 + k,
        )
        for nbytes in SIZES
        for experiment in (1, 2)
        for k in (1, 2, 4)
    ]
    measured: dict[str, Any] = {
        "verdict": verdict,
        "provenance": PROVENANCE,
        "points": tuple(
            [point(nbytes, mode) for mode in MODES for nbytes in SIZES]
            if points is None
            else points
        ),
        "medians": tuple(medians),
    } | {name: changes.pop(name) for name in [*changes] if name in Measurements.__struct_fields__}
    return Profile(
        **{"fingerprint": FINGERPRINT, "measurements": Measurements(**measured), **changes}
    )


def of_library(mpi_library: str, *points: MeasuredSize, **changes: Any) -> Profile:
    """A profile measured with this MPI library.   changes: as those of `profile`."""
    fingerprint = msgspec.structs.replace(FINGERPRINT, mpi_library=mpi_library)
    return profile(points or None, fingerprint=fingerprint, **changes)


def example(mpi_library: str = "Test MPI 1.0") -> Profile:
    """A profile of a machine that is not this one: t0 = 1 µs, λ = 3 at every size."""
    points = [point(n, lam=3.0, t0_s=1e-6, lam_interval=(2.9, 3.1)) for n in (64, 4096)]
    hosts = msgspec.structs.replace(PROVENANCE, hosts={"elsewhere": 4}, ranks=4)
    return of_library(mpi_library, *points, medians=(), provenance=hosts)


def race_result(nbytes: int, **changes: Any) -> RaceResult:
    """A race on 4 ranks that a tree has won."""
    fields: dict[str, Any] = {
        "collective": "broadcast",
        "form": "persistent",
        "ranks": 4,
        "nbytes": nbytes,
        "root": 0,
        "algorithm": "broadcast/alpha_tree",
        "settings": {"alpha": "9/16", "segment": 4096, "deep": [1, {"a": None}]},
        "ours_s": 1e-6,
        "library_s": 2e-6,
        "speedup_low": 1.8,
        "speedup_high": 2.2,
        "decision": "collwise",
    }
    return RaceResult(**(fields | changes))


def won_race(**changes: Any) -> RaceResult:
    """A race of blocking broadcasts that a chain won, twice as fast as the library's own."""
    chain = {"form": "blocking", "algorithm": "broadcast/chain", "settings": {}}
    near = {"nbytes": 1024, "speedup_low": 1.9, "speedup_high": 2.1}
    return race_result(**chain | near | changes)
