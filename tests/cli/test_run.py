"""`collwise run`: scripts that know nothing of collwise, on each MPI library."""

import json
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

from collwise.profiles.profile import Profile
from tests.cli.conftest import Run
from tests.cli.running import (
    Ended,
    alone,
    await_none,
    check_schema,
    environment,
    launched,
    on_one,
    process,
    run,
)
from tests.mpi.launching import LIMIT_S, Library

ALGORITHMS = "broadcast=chain; allreduce=ring; allgatherv=bruck"

SCRIPT = """
    import json, pickle, sys
    import numpy as np
    from helper import VALUE, size_of
    import mpi4py
    mpi4py.rc.threads = True
    from mpi4py.MPI import *
    from mpi4py import MPI

    class Thing:
        pass

    def total(x, comm=COMM_WORLD):
        result = np.zeros_like(x)
        comm.Allreduce(x, result)
        return result

    assert pickle.loads(pickle.dumps(COMM_WORLD)) is MPI.COMM_WORLD is COMM_WORLD
    assert isinstance(pickle.loads(pickle.dumps(Thing())), Thing)
    assert isinstance(COMM_WORLD, MPI.Intracomm) and isinstance(COMM_SELF, MPI.Intracomm)
    size, rank = COMM_WORLD.size, COMM_WORLD.rank
    assert size_of() == size == 2 and COMM_SELF.size == 1
    for comm in (COMM_WORLD, COMM_WORLD.Dup(), COMM_WORLD.Split(0, -rank), COMM_SELF):
        assert (total(np.ones(100), comm) == comm.size).all()
    data = np.full(50, rank)
    ours, theirs = COMM_WORLD.Bcast_init(data), COMM_WORLD.Barrier_init()
    plain = COMM_WORLD.isend(("an", "object"), rank)
    for comm in (COMM_WORLD, COMM_WORLD.Create_cart([size]), COMM_SELF):
        again = MPI.Comm.fromhandle(comm.handle)
        assert type(again) is type(comm) and again == comm
        assert (total(np.ones(100), again) == comm.size).all()
    other = MPI.Intracomm(COMM_WORLD).Dup()
    assert type(MPI.Comm.fromhandle(other.handle)) is MPI.Intracomm
    for constant in (COMM_WORLD, COMM_SELF):
        constant.free()
        try:
            constant.Free()
            raise AssertionError
        except MPI.Exception:
            pass
        assert (total(np.ones(100), constant) == constant.size).all()
    for own in (MPI.Intracomm(COMM_WORLD), MPI.REQUEST_NULL, COMM_WORLD):
        assert pickle.loads(pickle.dumps(own)) == own
    MPI.Prequest.Startall([ours, theirs])
    assert MPI.Request.Waitall([ours, theirs])
    MPI.Prequest.Startall([ours, theirs])
    while not MPI.Request.Testall([ours, theirs]):
        pass
    ours.Start()
    received = COMM_WORLD.irecv(source=rank)
    assert MPI.Request.waitall([ours, received, plain]) == [None, ("an", "object"), None]
    assert not data.any()
    try:
        MPI.Request.Waitany([ours, theirs])
        told = ""
    except ValueError as problem:
        told = str(problem)
    assert MPI.Request.Waitany([COMM_WORLD.Ibarrier()]) == 0
    told = COMM_WORLD.gather(told)
    if rank == 0:
        print(json.dumps({"argv": sys.argv, "name": __name__, "file": __file__, "value": VALUE,
                          "told": told, "kind": type(COMM_WORLD).__name__}))
    sys.exit()
"""
HELPER = """
    from mpi4py import MPI
    VALUE = 3
    def size_of(comm=MPI.COMM_WORLD):
        return comm.size
    if __name__ == "__main__":
        import os, sys
        os.write(1, f"module {sys.argv[1:]} {MPI.COMM_WORLD.size}\\n".encode())  # in one piece
"""


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    (tmp_path / "script.py").write_text(dedent(SCRIPT), encoding="utf-8")
    (tmp_path / "helper.py").write_text(dedent(HELPER), encoding="utf-8")
    return tmp_path


def served(library: Library, folder: Path, *arguments: str, **more: str) -> Ended:
    """`collwise run` on 2 ranks of a launcher, where everything is served by plans.

    more: variables.  LAUNCHER is the launcher's process.
    """
    variables = environment(library, folder, COLLWISE_ALGORITHMS=ALGORITHMS, COLUMNS="250", **more)
    del variables["COLLWISE_PROFILE"]
    command = ["sh", "-c", 'LAUNCHER=$$ exec "$@"', "sh", *launched(library, "run", *arguments)]
    return run(command, folder, variables)


@pytest.mark.mpi
def test_a_script_sees_ours_as_the_world(mpi: Library, scripts: Path) -> None:
    ended = served(
        mpi, scripts, "--summary", "--json", "calls.json", "script.py", "--summary", "-n", "x"
    )
    assert ended.code == 0, ended
    told = json.loads(ended.out)
    assert told["argv"] == ["script.py", "--summary", "-n", "x"]
    assert (told["name"], told["value"], told["kind"]) == ("__main__", 3, "Comm")
    assert Path(told["file"]).name == "script.py"
    assert all("collwise.waitall" in one for one in told["told"])
    ended.explained(
        "Collectives, as rank 0 called them", "tune for these sizes: collwise tune -n 2"
    )
    document = json.loads((scripts / "calls.json").read_text(encoding="utf-8"))
    check_schema("run", document)
    calls = {(one["method"], one["form"], one["ranks"]): one for one in document["calls"]}
    world = calls["Allreduce", "blocking", 2]
    assert (world["times"], world["nbytes"], world["op"]) == (6, 800, "sum")
    assert world["algorithm"] == "allreduce/ring"
    assert calls["Allreduce", "blocking", 1]["algorithm"] == "library"
    assert calls["Bcast", "persistent", 2]["algorithm"] == "broadcast/chain"
    assert calls["gather", "blocking", 2]["why"] == "no plan is made for such calls"


@pytest.mark.mpi
@on_one("openmpi")
def test_a_summary_has_the_calls_on_the_scripts_own_communicators(
    mpi: Library, scripts: Path
) -> None:
    (scripts / "own.py").write_text(
        "import collwise as cw, numpy as np\n"
        "from mpi4py import MPI\n"
        "comm = cw.Comm(MPI.COMM_WORLD)\n"
        "for _ in range(3): comm.Bcast(np.zeros(100))\n"
        "comm.Dup().Allreduce(np.zeros(7), np.zeros(7))\n",
        encoding="utf-8",
    )
    ended = served(mpi, scripts, "--summary", "own.py")
    assert ended.code == 0, ended
    ended.explained("run it with --json FILE, then collwise tune -n 2 --from-summary FILE")
    rows = [line.split("│")[1:6] for line in ended.err.splitlines() if "blocking" in line]
    calls = [[cell.strip() for cell in row] for row in rows]
    assert calls == [["3", "Bcast", "blocking", "2", "800 B"],
                     ["1", "Allreduce", "blocking", "2", "56 B"]]  # fmt: skip


@pytest.mark.mpi
@on_one("mpich")
def test_the_next_step_under_srun_is_another_srun(mpi: Library, scripts: Path) -> None:
    step = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_MPI_TYPE": "pmi2"}
    code = "from mpi4py import MPI; MPI.COMM_WORLD.Bcast(bytearray(9))"
    variables = environment(mpi, scripts, **step) | {"COLLWISE_PROFILE": ""}
    command = launched(mpi, "run", "--summary", "-c", code)
    place = command.index(str(mpi.python))  # without what only Hydra's mpiexec sets
    command[place:place] = ["env", "-u", "MPI_LOCALNRANKS"]
    ended = run(command, scripts, variables)
    ended.explained("then srun --mpi=pmi2 -n 2 collwise tune --from-summary FILE")


LEARNS = """
import time
import numpy as np
from mpi4py import MPI
comm, data = MPI.COMM_WORLD, np.zeros(32)
while True:
    comm.Allreduce(np.ones(32), data)
"""


@pytest.mark.mpi
@on_one("mpich")
def test_what_was_learned_is_there_while_the_program_runs(mpi: Library, scripts: Path) -> None:
    """It runs into its time limit, where nothing of it is asked any more."""
    (scripts / "learns.py").write_text(LEARNS, encoding="utf-8")
    measured = process(mpi, scripts, "measure", "-n", "2", "--budget", "0.5", "--bytes", "256")
    assert measured.code == 0, measured
    running = subprocess.Popen(
        alone(mpi, "run", "-n", "2", "--learn", "100%", "learns.py"),
        cwd=scripts,
        env=environment(mpi, scripts),
        stdin=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + LIMIT_S
        while not Profile.load(scripts / "profile.json").race_results:
            assert time.monotonic() < deadline, "rank 0 has saved nothing"
            assert running.poll() is None, "it ended by itself"
            time.sleep(0.05)
    finally:
        running.terminate()
        running.wait(10)
    assert all(race.learned for race in Profile.load(scripts / "profile.json").race_results)
    assert await_none(f"XDG_DATA_HOME={scripts}") == []


@pytest.mark.mpi
@on_one("mpich")
def test_one_rank_that_fails_ends_all(mpi: Library, scripts: Path) -> None:
    (scripts / "fails.py").write_text(
        dedent("""
            from mpi4py import MPI
            def deep():
                raise KeyError("lost")
            MPI.COMM_WORLD.Bcast(bytearray(9))
            if MPI.COMM_WORLD.rank == 1:
                deep()
            MPI.COMM_WORLD.Bcast(bytearray(9), 1)
        """),
        encoding="utf-8",
    )
    ended = served(mpi, scripts, "fails.py", COLLWISE_NODE="memory")
    assert ended.code == 1, ended
    assert "KeyError: 'lost'" in ended.err
    assert 'fails.py", line 7, in <module>' in ended.err
    for name in ("collwise", "runpy"):
        assert f"{name}/" not in ended.err.partition("KeyError")[0], ended.err
    assert await_none(f"XDG_DATA_HOME={scripts}") == []


ENDED = """
    import os, signal, sys, threading
    import numpy as np
    from mpi4py import MPI
    from collwise.mpi.engine.loading import COMPILED

    comm, given, total = MPI.COMM_WORLD, np.ones(20_000), np.zeros(20_000)
    comm.Allreduce(given, total)
    with open("/proc/self/maps") as maps:  # it is in no folder, so it ends with the ranks
        assert ("/memfd:collwise" in maps.read()) == (COMPILED is not None)
    if comm.rank == 1:
        process = os.getpid() if sys.argv[1] == "rank" else int(os.environ["LAUNCHER"])
        act = os.kill, (process, getattr(signal, sys.argv[2]))
        threading.Timer(0.2, *act).start()
    while True:
        comm.Allreduce(given, total)
"""


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("mpi", "whose", "name"),
    [
        ("openmpi", "rank", "SIGKILL"),
        ("mpich", "rank", "SIGINT"),
        ("mpich", "launcher", "SIGINT"),
        *(
            pytest.param(*one, marks=pytest.mark.exhaustive)
            for one in (
                ("mpich", "rank", "SIGKILL"),
                ("openmpi", "rank", "SIGINT"),
                ("openmpi", "launcher", "SIGINT"),
            )
        ),
    ],
    indirect=["mpi"],
)
def test_a_signal_ends_ranks_that_share_memory(
    mpi: Library, scripts: Path, whose: str, name: str
) -> None:
    """The other rank waits in a collective, for a word that nobody writes any more."""
    (scripts / "ended.py").write_text(dedent(ENDED), encoding="utf-8")
    ended = served(mpi, scripts, "ended.py", whose, name, COLLWISE_NODE="memory")
    assert ended.code != 0
    assert "AssertionError" not in ended.err
    assert await_none(f"XDG_DATA_HOME={scripts}") == []


@pytest.mark.mpi
@on_one("mpich")
def test_ranks_started_here(mpi: Library, scripts: Path) -> None:
    command = alone(mpi, "run", "-n", "2", "-m", "helper", "-n", "--json")
    out = run(command, scripts, environment(mpi, scripts) | {"COLLWISE_PROFILE": ""}).printed()
    assert out.count("module") == out.count("['-n', '--json'] 2\n") == 2


@pytest.mark.mpi
@on_one("openmpi")
def test_an_exit_code_is_the_scripts(mpi: Library, scripts: Path) -> None:
    ended = process(mpi, scripts, "run", "-c", "import sys; sys.exit(7)")
    assert (ended.code, ended.out, ended.err) == (7, "", "")


@pytest.mark.mpi
@on_one("mpich")
def test_a_profile_that_is_not_there(mpi: Library, scripts: Path) -> None:
    ended = process(mpi, scripts, "run", "helper.py")
    ended.refused("there is no such file", "COLLWISE_PROFILE")


@pytest.mark.mpi
@on_one("openmpi")
def test_mpi_that_the_script_starts(mpi: Library, scripts: Path) -> None:
    (scripts / "late.py").write_text(
        dedent("""
            import mpi4py
            mpi4py.rc.initialize = False
            from mpi4py import MPI
            MPI.Init_thread(MPI.THREAD_MULTIPLE)
            print(type(MPI.COMM_WORLD).__module__)
        """),
        encoding="utf-8",
    )
    variables = environment(mpi, scripts) | {"COLLWISE_PROFILE": ""}
    ended = run(alone(mpi, "run", "late.py"), scripts, variables)
    assert (ended.code, ended.out, ended.err) == (0, "collwise.comm.communicator\n", "")


PART = """
    import sys
    import numpy as np
    from mpi4py import MPI
    world = MPI.COMM_WORLD
    if sys.argv[2:]:
        world.send("mine", 0)  # it must meet nothing of ours
    part = world.Split(int(sys.argv[1]), world.rank)
    for _ in range(0 if world.rank else world.size - 1):
        assert world.recv() == "mine"
    x = np.full(300, part.rank + 1.0)
    part.Allreduce(MPI.IN_PLACE, x)
    world.Allreduce(MPI.IN_PLACE, x)
    sys.stdout.write(f"{type(world).__module__} {x[0]}\\n")  # at once
"""
SOON = (
    "from collwise.cli import main\n"
    "from collwise.mpi.runtime import roll_call\n"
    "roll_call.LIMIT_S = 0.3\n"
    "main()"
)
"""`collwise` that waits less for other ranks.  It needs no MPI before its script does."""


@pytest.mark.mpi
@pytest.mark.parametrize("plain", [(0,), (1,), ()])
def test_several_programs_of_one_launch(
    mpi: Library, tmp_path: Path, plain: tuple[int, ...]
) -> None:
    """Those under `collwise run` share a world of ours if all are; otherwise all have mpi4py's."""
    (tmp_path / "part.py").write_text(dedent(PART), encoding="utf-8")
    ours = ["-m", "collwise"] if not plain else ["-c", SOON]
    parts = []
    for number, ranks in enumerate((1, 2)):
        words = ["part.py", str(number), *["sends"] * (number == 1)]
        program = words if number in plain else [*ours, "run", *words]
        parts.append(["-n", str(ranks), str(mpi.python), *program])
    command = [*mpi.command(1)[:-3], *parts[0], ":", *parts[1]]
    variables = environment(mpi, tmp_path) | {"COLLWISE_PROFILE": ""}
    ended = run(command, tmp_path, variables, limit_s=60)
    assert ended.code == 0, ended
    if not plain:
        assert (ended.err, ended.out.count("collwise.comm.communicator 7.0")) == ("", 3)
        return
    assert ended.out.count("mpi4py.MPI 7.0") == 3, ended
    ended.explained("start all programs of a launch by `collwise run`")
    absent = "(0)" if plain == (0,) else "(1, 2)"
    assert absent in ended.err


FORKS = """
    import multiprocessing, os, sys, time
    import mpi4py
    mpi4py.rc.finalize = False  # in a child MPICH's own end fails, and Open MPI's hangs
    from mpi4py import MPI
    import numpy as np

    world, data, total = MPI.COMM_WORLD, np.full(1000, MPI.COMM_WORLD.rank), np.ones(3)
    world.Allreduce(MPI.IN_PLACE, total)
    dropped = world.Bcast_init(np.zeros(9))
    if world.rank:
        request = world.Ibcast(data)
    world.Barrier()
    begin = time.monotonic()
    if (child := os.fork()) == 0:
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
    assert time.monotonic() - begin < 4, "the child waited for what is under way"
    if world.rank == 0:
        request = world.Ibcast(data)
    request.Wait()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]
    world.Allreduce(MPI.IN_PLACE, total)
    assert (total == 4).all() and not data.any()
    MPI.Finalize()
"""


@pytest.mark.mpi
def test_nothing_of_ours_acts_in_a_forked_child(mpi: Library, tmp_path: Path) -> None:
    """It saves nothing, tells nothing, and waits for nothing that is its parent's."""
    (tmp_path / "forks.py").write_text(dedent(FORKS), encoding="utf-8")
    ended = served(mpi, tmp_path, "--summary", "--json", "calls.json", "forks.py")
    assert (ended.code, ended.out) == (0, ""), ended
    ended.explained("Collectives, as rank 0 called them")
    [_, called] = json.loads((tmp_path / "calls.json").read_text(encoding="utf-8"))["calls"][:2]
    assert called["method"] in ("Allreduce", "Bcast")


@pytest.mark.parametrize(
    ("words", "variable", "seen"),
    [
        ("--learn 200%", "", "200% is no share; give 0% to 100%"),
        ("", "COLLWISE_LEARN=much", "learning while running"),
        ("", "COLLWISE_ALGORITHMS=nonsense", "'nonsense' is no choice"),
        ("", "COLLWISE_ALGORITHMS=broadcast=binomal", "did you mean broadcast/binomial, "),
        ("--profile absent", "", "the profile absent: there is no such file"),
    ],
)
def test_what_is_known_is_refused_before_ranks_start(
    collwise: Run,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    variable: str,
    seen: str,
) -> None:
    """There is no launcher that could start any."""
    monkeypatch.setenv("COLLWISE_MPIEXEC", "no-such-launcher")
    (folder / "x.py").touch()
    name, _, value = variable.partition("=")
    monkeypatch.setenv(name or "UNUSED", value)
    collwise("run", "-n", 2, *words.split(), "x.py").refused(seen)


def test_ranks_under_a_launcher(collwise: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "2")
    collwise("run", "-n", "4", __file__).refused("leave out -n under a launcher")
    assert "mpi4py.run" not in sys.modules
