"""Every public function with odd arguments: a result, or one of our sentences, and soon."""

import inspect
import os
import re
import signal
import subprocess
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import collwise as cw
from collwise.errors import CollwiseError, InvalidArgument
from tests.attack.odd_values import ODD
from tests.profiles.example import example

LIMIT_S, WAITING_S = 20, 200
"""Of processor time, whatever else runs, and on the clock."""
MODULES = (cw.hybrid, cw.postal, cw.sources, cw.topology)

MACHINE = cw.Machine.postal(t0_s=Fraction(1, 1000), lam=4)
PLAN = cw.plan("broadcast", ranks=8, nbytes=512, machine=MACHINE)
TRACE = cw.simulate(PLAN.schedule, MACHINE)
MACHINES = (
    MACHINE,
    cw.Machine.hockney(alpha_s=1, beta_s=1, gamma_s=1),
    cw.Machine.loggp(L_s=4, o_s=1, g_s=1, G_s=1),
    cw.Machine.wormhole(send_s=1, receive_s=1, hop_s=1, beta_s=1, gamma_s=1),
    cw.Machine.levels([MACHINE, MACHINE], cw.Placement.regular(2, 4), ports=[1]),
    example().machine,
)
MESH = cw.topology.Mesh(2, 4)

INTERNAL = {"check", "save", "snake_position", "snake_rank", "with_combining", "with_race_results"}
"""Called with what other parts of the package have checked, or to write files."""

LINEAR = {"alpha_intersection", "census_rounds", "greedy_tree", "reached"}
"""Their work grows with numbers, however large: they get none beyond `MAX_ARGUMENT`."""
MAX_ARGUMENT = 10**6

RIGHT: dict[str, Any] = {
    "algorithm": "chain",
    "collective": "broadcast",
    "columns": 4,
    "combine": lambda m: m,
    "cost": lambda m: m + 1,
    "count": 3,
    "d": 3,
    "dtype": "float64",
    "laws": [MACHINE, MACHINE],
    "level": 1,
    "levels": [[[0, 1], [2]]],
    "link": 0,
    "machine": MACHINE,
    "nbytes": 512,
    "op": "sum",
    "order": "any",
    "placement": cw.Placement.regular(2, 4),
    "p": 8,
    "rank": 3,
    "ranks": 8,
    "root": 0,
    "rows": 2,
    "schedule": PLAN.schedule,
    "shape": (2, 4),
    "source": 0,
    "split_rule": lambda m: m // 2,
    "strategy": (0, 1, 1),
    "sources": [0, 1],
    "target": 5,
    "text": "mesh:2x4",
    "topology": MESH,
}
"""Values that are right, by the name of the parameter."""


def names_of(module: types.ModuleType) -> list[str]:
    """The public names that a module defines or lists."""
    listed = getattr(module, "__all__", None)
    return listed or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]


def targets() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Everything public that can be called without an MPI library, by name."""
    makers: list[tuple[Any, str]] = [
        (cw, "plan simulate ideal verify"),
        (cw.Machine, "postal hockney loggp wormhole levels"),
        (cw.Placement, "of regular nodes of_members"),
        (cw.Profile, "from_json load"),
    ]
    for owner, names in makers:
        yield from ((f"{owner.__name__}.{name}", getattr(owner, name)) for name in names.split())
    for module in MODULES:
        for name in names_of(module):
            if (
                name not in INTERNAL
                and callable(value := getattr(module, name))
                and not inspect.isabstract(value)
            ):
                yield f"{module.__name__}.{name}", value
    topologies = [
        MESH,
        cw.topology.Torus(2, 2, 2),
        cw.topology.Hypercube(3),
        cw.topology.Complete(8),
        cw.topology.Embedded(MESH, (1, 0, 2)),
    ]
    objects = [*MACHINES, *topologies, PLAN, TRACE, PLAN.schedule, example()]
    for one in objects:
        for name, _ in inspect.getmembers(type(one), inspect.isfunction):
            if not name.startswith("_") and name not in INTERNAL:
                yield f"{type(one).__name__}.{name}", getattr(one, name)
    for algorithm in cw.ALGORITHMS.values():
        yield f"{algorithm.name}.schedule", algorithm.schedule
        yield f"{algorithm.name}.predict", algorithm.predict


def arguments(function: Callable[..., Any], random: Random) -> tuple[list[Any], dict[str, Any]]:
    """Arguments for a call: as many as it takes, mostly right, one of them odd at least."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    parameters = list(inspect.signature(function).parameters.values())
    wrong = random.randrange(len(parameters)) if parameters else 0
    for number, parameter in enumerate(parameters):
        optional = parameter.default is not parameter.empty
        if optional and number != wrong and random.random() < 0.6:
            continue
        right = RIGHT.get(parameter.name, parameter.default if optional else 1)
        value = random.choice(ODD) if number == wrong or random.random() < 0.2 else right
        if callable(right) and callable(value):
            value = right  # what a function of the caller's raises is the caller's
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += [random.choice(ODD) for _ in range(random.randrange(4))]
        elif parameter.kind is parameter.VAR_KEYWORD:
            named |= {"segment": value} if random.random() < 0.5 else {}
        elif parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = value
        else:
            named[parameter.name] = value
    if positional:  # then those before them come by their places
        first = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        positional = [named.pop(name, 1) for name in first] + positional
    return positional, named


def is_large(value: Any) -> bool:
    try:
        return bool(abs(Fraction(value) if isinstance(value, str) else value) > MAX_ARGUMENT)
    except (TypeError, ValueError):
        return False


@contextmanager
def soon(what: str) -> Iterator[None]:
    """A call that works for longer, or waits, is a hang."""

    def late(number: int, frame: object) -> None:
        raise TimeoutError(f"{what} did not end within {LIMIT_S} s")

    timers = {
        signal.SIGPROF: (signal.ITIMER_PROF, LIMIT_S),
        signal.SIGALRM: (signal.ITIMER_REAL, WAITING_S),
    }
    before = {number: signal.signal(number, late) for number in timers}
    for timer, limit_s in timers.values():
        signal.setitimer(timer, limit_s)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def problem_with(name: str, function: Callable[..., Any], random: Random) -> str:
    """What is wrong with how one call ended; empty if nothing is."""
    positional, named = arguments(function, random)
    shown = ", ".join([*map(repr, positional), *(f"{k}={v!r}" for k, v in named.items())])
    asked = f"{name}({shown[:300]})"
    if name.rpartition(".")[2] in LINEAR and any(map(is_large, [*positional, *named.values()])):
        return ""
    try:
        with soon(asked), warnings.catch_warnings():
            warnings.simplefilter("error")
            result = function(*positional, **named)
            if inspect.isgenerator(result):
                next(result, None)
    except CollwiseError as error:
        complete = error.asked and error.seen and error.remedy
        return "" if complete else f"{asked}: a sentence with a gap: {error}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{asked}: {type(error).__name__}: {str(error)[:200]}"
    return ""


EXHAUSTIVE = [pytest.param(15_000, seed, marks=pytest.mark.exhaustive) for seed in range(2, 6)]


@pytest.mark.parametrize(("calls", "seed"), [(3_000, 1), *EXHAUSTIVE])
def test_odd_arguments(calls: int, seed: int) -> None:
    random = Random(seed)
    functions = list(targets())
    assert len({name for name, _ in functions}) > 60
    problems = (problem_with(*functions[n % len(functions)], random) for n in range(calls))
    assert not (found := [*filter(None, problems)]), "\n".join(found)


def test_the_attack_is_odd_enough() -> None:
    """It finds what is not refused: a function that trusts its argument."""

    def trusting(ranks: int) -> int:
        return ranks + 1

    random = Random(0)
    assert any(re.search("TypeError", problem_with("trusting", trusting, random)) for _ in ODD)


# Odd values that once went wrong.


def predicted(name: str, **settings: Any) -> Any:
    return cw.ALGORITHMS[name].predict(MACHINE, 8, 2**63, segment=1, **settings)


def multilevel(collective: str, **settings: Any) -> Any:
    algorithm = cw.ALGORITHMS[f"{collective}/multilevel"]
    flat = dict.fromkeys(algorithm.parameters, "flat")
    return algorithm.schedule(2**63, 512, **(flat | settings))


def planned(collective: str = "broadcast", **more: Any) -> Any:
    return cw.plan(collective, **{"ranks": 4, "nbytes": 0, "machine": MACHINE, **more})


REFUSED: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "give an integer of at least 0": (
        lambda nbytes: [machine.message(nbytes) for machine in MACHINES],
        (-1, float("nan"), 1.5, None, "8"),
    ),
    "rank = 1.5; give an integer from 0 to 7": (PLAN.schedule.rank, (1.5,)),
    "sum is for numbers": (
        lambda dtype: planned("reduce", dtype=dtype),
        ("U3", "S5", "datetime64[s]", "timedelta64[ms]"),
    ),
    f"from 1 to {2**31 - 1}": (lambda n: planned(ranks=10**n), (10, 19, 400, 5000)),
    "bits; give a finite number": (
        lambda n: cw.Machine.postal(t0_s=10**n, lam=4),
        (400, 5000),
    ),
    "register an algorithm": (
        lambda name: cw.register(replace(cw.ALGORITHMS["broadcast/chain"], name=name)),
        ("", "x", "nosuch/x", "broadcast/", "broadcast/a b", "broadcast/x/y", "allgatherv/library",
         "allgathers/mine", "broadcast/chain", 5, None),
    ),
    "it is 5; give a": (cw.register, (5,)),
    "are too many; give at most 1048576": (
        lambda call: call(),
        (
            lambda: cw.Placement.regular(10**9, 10**9),
            lambda: cw.Placement.regular(*np.full(2, 2**63, "u8")),
            lambda: cw.Placement.regular(2, 3, 10**12),
            lambda: cw.Placement.nodes([10**9]),
            lambda: multilevel("broadcast"),
            lambda: multilevel("allreduce", across="census"),
        ),
    ),
    "pieces; choose longer ones": (
        lambda call: call(),
        (
            lambda: predicted("broadcast/circulant"),
            lambda: predicted("reduce/postal_rounds", latency=2),
        ),
    ),
    "give a list of rows": (lambda rows: cw.sources.rows_of((2, 4), 2, rows), (np.array("a"),)),
}  # fmt: skip
"""By what is said: a call, and values that it refuses."""


@pytest.mark.parametrize("said", REFUSED)
def test_refused(said: str) -> None:
    call, values = REFUSED[said]
    for value in values:
        with soon(said), pytest.raises(InvalidArgument, match=re.escape(said)):
            call(value)


SETTINGS = {
    "segment": 64,
    "lam": 4,
    "strategy": (0,) * 31,
    "radix": 4,
    "alpha": "1/2",
    "k": 3,
    "latency": 3,
}
FLAT = [one for one in cw.ALGORITHMS.values() if one.parameters.keys() <= SETTINGS.keys()]
"""All but those that are put together from others."""


@pytest.mark.parametrize("algorithm", FLAT, ids=lambda one: one.name)
def test_the_time_on_more_ranks_than_there_are(algorithm: cw.Algorithm) -> None:
    """A closed form, or a refusal: several took minutes, or all memory."""
    settings: dict[str, Any] = {name: SETTINGS[name] for name in algorithm.parameters}
    nbytes = 8 * 2**31 if algorithm.collective == "reduce_scatter_block" else 8
    if algorithm.collective == "allgatherv":
        settings["sources"] = [0, 5]
    with soon(algorithm.name):
        with suppress(InvalidArgument):
            assert algorithm.schedule(2**31, nbytes, **settings)
        with suppress(InvalidArgument):
            assert algorithm.predict(MACHINE, 2**31, nbytes, **settings) > 0


def test_names_that_people_try_first() -> None:
    assert cw.__version__ == version("collwise")
    assert repr(PLAN) == f"<Plan of {PLAN.problem}: {PLAN.choice.label}, {PLAN.choice.time}>"
    with pytest.raises(KeyError, match=r"preset machine 'paragn': .* did you mean paragon\?"):
        cw.presets["paragn"]
    assert cw.presets.get("paragn") is None


def test_every_public_name_is_there_without_mpi(tmp_path: Path) -> None:
    """Without an MPI library `Comm` says so, in our words first."""
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").touch()
    (tmp_path / "mpi4py" / "MPI.py").write_text("raise RuntimeError('cannot load MPI library')\n")
    script = (
        "import collwise as cw\n"
        "for name in sorted({*cw.__all__} - {'Comm', 'run', 'startall', 'waitall'}):\n"
        "    assert getattr(cw, name) is not None\n"
        "try:\n    cw.Comm\n"
        "except cw.errors.NoMPI as error:\n    print(error.asked, error.__cause__)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=WAITING_S,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("running on MPI None\n", "")
