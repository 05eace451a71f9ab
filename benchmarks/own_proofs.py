"""Every algorithm that the library has: a candidate or why not, and how it is proved to run.

Each is called by its name and looked at: how it combines, who waits for whom, which blocks arrive
while a rank is late, and how many messages ranks send (where the library counts them).  What no
other algorithm of the collective does is a proof, if some algorithm does not do as the default.  So
is that MPICH, told to raise an error rather than take another algorithm, raises none.  "Not proved"
names the algorithms that do the same.

MPICH's smp divides the ranks by nodes: on one node nothing tells it from another algorithm.
Open MPI's knomial Ibcast has a radix that is read at the start only; here it is 2.

    python benchmarks/own_proofs.py --ranks 4
"""

import ctypes
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from bench_support import start_or_be_rank, table_head, table_row, today
from mpi4py import MPI

from collwise.algorithms.registry import describe
from collwise.measure.race import OWN, method_name
from collwise.mpi.library.fingerprints import broadcast_tree, combined, early_blocks, summed
from collwise.mpi.library.own_algorithms import catalogue, refusing, worth_racing
from collwise.mpi.library.switching import OwnCalls, Switched
from collwise.mpi.library.tool_interface import missing, variables
from collwise.mpi.runtime.world import library_line
from collwise.profiles.records import FORMS, Form
from collwise.schedule.collectives import COLLECTIVES
from collwise.system.files import save_text

SIZES = (512, 40_000)
"""Bytes of vectors; of blocks, for allgathers."""
SUMS = [[r.random() * 10.0 ** r.randrange(9) for _ in range(64)] for r in map(Random, range(6))]
"""What ranks contribute to sums."""
TELLING = {"segment": 1024, "chains": 1, "k": 2}
"""Settings with which algorithms differ in messages that do not differ otherwise."""


class Row(NamedTuple):
    """A line of the table.   looks: what was seen, by the name of the means."""

    method: str
    form: str
    name: str
    verdict: str
    strict: bool = False
    looks: Mapping[str, str] = {}


class Forced(MPI.Intracomm):
    """A communicator whose collectives run by one algorithm, in one form."""

    def by(self, form: Form, switched: Switched | None) -> "Forced":
        self.form, self.switched, self.plain = form, switched, MPI.Intracomm(self)
        return self

    def run(self, method: str, *arguments: Any) -> None:
        called = getattr(MPI.Intracomm, method_name(method, self.form))
        library = partial(called, self.plain, *arguments)
        made = library() if self.switched is None else self.switched.call(library)
        if self.form == "nonblocking":
            made.Wait()
        elif self.form == "persistent":
            try:
                made.Start()
                made.Wait()
            finally:
                made.Free()


def _forced(method: str) -> Callable[..., None]:
    return lambda self, *arguments: self.run(method, *arguments)


for _method in {method for kind in COLLECTIVES.values() for method in kind.methods}:
    setattr(Forced, _method, _forced(_method))


class Counters:
    """How many messages this rank has sent to each other one, if the library counts them."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.library, self.counts = ctypes.CDLL(MPI.__file__), np.zeros(comm.Get_size(), "u8")
        number, index = ctypes.c_int(), ctypes.c_int()
        self.session, self.handle = ctypes.c_void_p(), ctypes.c_void_p()
        name, sent = b"pml_monitoring_messages_count", 2  # MPI_T_PVAR_CLASS_SIZE
        assert variables(), missing()  # so MPI_T has begun
        self.known = MPI.get_vendor()[0] == "Open MPI" and not self.library.MPI_T_pvar_get_index(
            name, sent, ctypes.byref(index)
        )
        if self.known:
            self.library.MPI_T_pvar_session_create(ctypes.byref(self.session))
            place = ctypes.c_void_p(MPI._addressof(comm))
            handle = ctypes.byref(self.handle), ctypes.byref(number)
            self.library.MPI_T_pvar_handle_alloc(self.session, index, place, *handle)
            self.library.MPI_T_pvar_start(self.session, self.handle)

    def read(self) -> list[int]:
        if self.known:
            place = ctypes.c_void_p(self.counts.ctypes.data)
            self.library.MPI_T_pvar_read(self.session, self.handle, place)
        return [int(one) for one in self.counts]


def exchange(comm: MPI.Intracomm, method: str, nbytes: int) -> tuple[list[Any], Any, Any]:
    """Arguments of a method, where its result is, and what that must be on this rank."""
    ranks, rank = comm.Get_size(), comm.Get_rank()
    vector = np.arange(nbytes // 8) + 1.0
    total, got = vector * (ranks * (ranks + 1) // 2), np.zeros(len(vector))
    mine, zero = vector * (rank + 1), np.zeros(len(vector))
    every = np.concatenate([vector * (r + 1) for r in range(ranks)])
    if method == "Bcast":
        data = vector.copy() if rank == 0 else got
        return [data, 0], data, vector
    if method == "Reduce":
        return [mine, got, MPI.SUM, 0], got, zero if rank else total
    if method == "Allreduce":
        return [mine, got, MPI.SUM], got, total
    if method == "Reduce_scatter_block":
        return [np.tile(mine, ranks), got, MPI.SUM], got, total
    gathered = np.zeros(len(every))
    if method == "Allgatherv":
        return [mine, [gathered, [len(mine)] * ranks, MPI.DOUBLE]], gathered, every
    return [mine, gathered], gathered, every


def by_users_operator(comm: Forced, lax: Forced, method: str, nbytes: int) -> str:
    """How a user's operator is combined, or that the library refuses it.

    Requests may be by another algorithm: after a refusal MPICH 5.0.2 cannot end.
    """
    try:
        on = comm if comm.form == "blocking" else lax
        return str(combined(on, method, nbytes).by_rank)
    except MPI.Exception:
        return "refused"


def looks(comm: Forced, lax: Forced, method: str, counters: Counters) -> dict[str, str]:
    """What an algorithm does, by the name of the means by which it was seen.

    lax: lets the library take another algorithm.   Means that noise disturbed are left out.
    """
    found: dict[str, str] = {}
    if method == "Bcast" or method.startswith("Allgather"):
        if method == "Bcast":
            tree = broadcast_tree(comm, SIZES[0])
            seen: Any = None if "undecided" in tree.why_not else (tree.late,)
        else:
            seen = early_blocks(comm, method, SIZES[0])
        if seen is not None:
            found["delays"] = str([[sorted(some) for some in here] for here in seen])
    else:
        ranks = comm.Get_size()
        told = [by_users_operator(comm, lax, method, n * ranks) for n in SIZES]
        sums = [summed(comm, method, n * ranks, some).by_rank for n in SIZES for some in SUMS]
        found["fingerprint"] = str([told, sums])
    if counters.known:
        found["counted messages"] = messages(comm, method, counters)
    return found


def messages(comm: Forced, method: str, counters: Counters) -> str:
    """How many messages each rank sends to each other one, at each size."""
    counted, plain = [], MPI.Intracomm(comm)
    for nbytes in SIZES:
        arguments, *_ = exchange(comm, method, nbytes)
        plain.Barrier()
        before = counters.read()
        comm.run(method, *arguments)
        after = counters.read()
        counted.append([new - old for new, old in zip(after, before, strict=True)])
        plain.Barrier()
    return str(plain.allgather(counted))


def trouble(comm: Forced, method: str) -> str:
    """Why the algorithm is no candidate, by one call; empty if it is one.   Collective."""
    arguments, result, expected = exchange(comm, method, SIZES[0])
    try:
        comm.run(method, *arguments)
        here = "" if (result == expected).all() else "it leaves wrong data"
    except MPI.Exception as problem:
        here = f"the library refuses it here: {problem.Get_error_string().splitlines()[-1]}"
    except NotImplementedError:
        here = "the library has no persistent collectives"
    reason = next(filter(None, MPI.Intracomm(comm).allgather(here)), "")
    if not reason and comm.switched is not None:
        alike = comm.switched.alike(method, SIZES[0], MPI.Intracomm(comm), comm.form)
        reason = "" if alike else "ranks end with different bits"
    return reason


def rows_of(comm: MPI.Intracomm, method: str, form: Form, counters: Counters) -> Iterator[Row]:
    """The default and every algorithm that the library lists.   Collective."""
    ranks, known, calls = comm.Get_size(), catalogue(method, form), OwnCalls(comm, one_thread=True)
    yield Row(method, form, "", "", looks=_default(comm, method, form, counters))
    racing = worth_racing(method, ranks, composed=False, form=form)
    for name in known.algorithms:
        for some in [some for one, some in racing if one == name] or [{}]:
            label = describe(f"{OWN}{name}", some).removeprefix(OWN)
            found = calls.find(method, form, name, some, local=False)
            if isinstance(found, str):
                yield Row(method, form, label, found)
                continue
            refuse = refusing(name)
            strict = found._replace(writes=(*found.writes, *refuse)) if refuse else found
            forced = Forced(comm).by(form, strict)
            reason = trouble(forced, method)
            refused = reason.startswith(("the library", "it leaves"))
            lax = Forced(comm).by(form, found)
            seen = {} if refused else looks(forced, lax, method, counters)
            more = {k: v for k, v in TELLING.items() if k in known.algorithms[name].parameters}
            if seen and more and counters.known:
                others = OwnCalls(comm, one_thread=True)  # a communicator has ten duplicates
                told = others.find(method, form, name, more, local=False)
                if isinstance(told, Switched):
                    by = Forced(comm).by(form, told)
                    seen["counted messages, with settings"] = messages(by, method, counters)
                others.free()
            yield Row(method, form, label, reason or "candidate", bool(refuse), seen)
    for name, reason in known.left_out.items():
        yield Row(method, form, name or "all", reason)
    calls.free()


def _default(comm: MPI.Intracomm, method: str, form: Form, counters: Counters) -> dict[str, str]:
    plain = Forced(comm).by(form, None)
    return looks(plain, plain, method, counters)


def differ(one: Row, other: Row, means: str) -> bool:
    """Whether both were seen by these means, and not doing the same."""
    look = one.looks.get(means, "")
    usual = means.partition(",")[0] if means not in other.looks else means  # it has no settings
    return look != "" and other.looks.get(usual, look) != look


def proofs(rows: Sequence[Row]) -> list[str]:
    """How each algorithm of one collective and form is proved to be the one that ran.

    rows: the default's is the first.
    """
    default, *others = rows
    seen = [one for one in others if one.looks]
    switched = any(differ(one, default, means) for one in seen for means in one.looks)
    told = []
    for one in others:
        if not one.looks:
            told.append("refusal" if one.verdict.startswith("the library refuses") else "–")
            continue
        rivals = [other for other in seen if other is not one]
        proof = ""
        for means in one.looks:
            rivals = [other for other in rivals if not differ(one, other, means)]
            if not rivals and switched:
                proof = means
                break
        same = ", ".join(other.name for other in rivals)
        if not proof and one.strict and switched:
            proof = f"refusal: FALLBACK=error lets nothing else run (looks like {same})"
        usual = not any(differ(one, default, means) for means in one.looks)
        like = " (the default's, too)" * usual
        told.append((proof or f"not proved: it looks like {same or 'the default'}") + like)
    return told


def rank_main(out: Path, _: float) -> None:
    comm = MPI.COMM_WORLD.Dup()  # freed, since MPICH 5.0.2 keeps requests that it refused to make
    counters = Counters(MPI.COMM_WORLD)
    lines, counts = [], defaultdict[str, int](int)
    methods = [method for kind in COLLECTIVES.values() for method in kind.methods]
    for method in methods:
        for form in FORMS:
            rows = list(rows_of(comm, method, form, counters))
            for row, proof in zip(rows[1:], proofs(rows), strict=True):
                lines.append(table_row([method, form, row.name, row.verdict, proof]))
                counts[proof.split(":")[0].split(" (")[0]] += 1
    if comm.Get_rank() == 0:
        vendor = MPI.get_vendor()[0].replace(" ", "").lower()
        title = f"# {library_line()}'s own algorithms on {comm.Get_size()} ranks, {today()}\n\n"
        about = __doc__.split("\n\n")[1].replace("\n", " ") + "\n\n"
        counts["not called"] = counts.pop("–", 0)
        summary = ", ".join(f"{how} {many}" for how, many in counts.items())
        head = table_head(["method", "form", "algorithm", "candidate, or why not", "proved by"])
        text = f"{title}{about}Proofs: {summary}.\n\n{head}\n" + "\n".join(lines) + "\n"
        name = f"own-algorithms-{vendor}-{comm.Get_size()}-{today()}.md"
        save_text(out / name, text, "the table")
    comm.Free()


if __name__ == "__main__":
    os.environ.setdefault("OMPI_MCA_pml_monitoring_enable", "1")
    os.environ.setdefault("OMPI_MCA_coll_libnbc_ibcast_knomial_radix", "2")
    start_or_be_rank(__doc__, rank_main)
