"""The engine's core by itself, with the sanitizers; and builds with and without a compiler."""

import re
import shutil
import subprocess
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.mpi.launching import ROOT, Library, mpich

CORE = ROOT / "src" / "collwise" / "mpi" / "engine" / "core"
COMPILER = shutil.which("cc") or shutil.which("gcc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
BUILT = [*CORE.parent.glob("_engine.*so")]
needs_extension = pytest.mark.skipif(not BUILT, reason="the extension is not built")
LIMIT_S = 120


@needs_compiler
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_the_core_does_nothing_undefined(tmp_path: Path, sanitizer: str) -> None:
    """Nor do its owners, the library's hook and the helper race, nor ranks that share memory."""
    command = [
        str(COMPILER), "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-g", "-O1", "-Wall", "-Wextra",
        "-Werror", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", f"-I{CORE}", "-pthread",
    ]  # fmt: skip

    def run(*words: object) -> None:
        ran = subprocess.run(
            [*map(str, words)],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            cwd=tmp_path,
        )
        if "cannot find" in ran.stderr:
            pytest.skip(f"the compiler has no {sanitizer} sanitizer")
        assert (ran.returncode, ran.stderr) == (0, "")

    run(*command, "-c", *sorted(CORE.glob("*.c")))
    for tested in ("core_test", "node_test"):
        source = ROOT / "tests" / "mpi" / "core" / f"{tested}.c"
        run(*command, source, *tmp_path.glob("*.o"), "-o", tmp_path / tested)
        run(tmp_path / tested)


def _has_engine_of_its_own(folder: Path, *options: str) -> Path:
    """A copy of the package whose engine is compiled with these options."""
    package = folder / "collwise"
    shutil.copytree(ROOT / "src" / "collwise", package, ignore=shutil.ignore_patterns("*.so"))
    sources, made = CORE.parent.glob("*/*.c"), package / "mpi" / "engine" / "_engine.abi3.so"
    command = [
        str(COMPILER), "-shared", "-fPIC", "-O1", "-g", *options, "-pthread",
        f"-I{sysconfig.get_path('include')}", *map(str, sources), "-o", str(made),
    ]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if "cannot find" in ran.stderr:
        pytest.skip("the compiler has no address sanitizer")
    assert ran.returncode == 0, ran.stderr
    return folder


@needs_compiler
@needs_extension
@pytest.mark.exhaustive
@pytest.mark.mpi
def test_full_caches_leave_no_memory_that_c_still_uses(tmp_path: Path, mpi: Library) -> None:
    folder = _has_engine_of_its_own(tmp_path, "-fsanitize=address")
    find = [str(COMPILER), "-print-file-name=libasan.so"]
    found = subprocess.run(find, capture_output=True, text=True, check=True, timeout=LIMIT_S)
    words = found.stdout.strip(), "from tests.mpi.programs import caches, checks; checks.main()"
    options = {"ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}  # the sanitizer's own
    ran = mpi.run(2, "-c", PRELOADED, *words, limit_s=LIMIT_S, PYTHONPATH=str(folder), **options)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.count('"complaints": []') == 4, ran.stdout


DAMAGE = {
    "half": "is incomplete: install collwise anew",
    "empty": "cannot be loaded here .*file too short",
    "missing": "is not built .*(cannot import name|No module named)",
}


@needs_extension
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_extension_is_not_used(tmp_path: Path, damage: str) -> None:
    """Python serves, and says why on one line; nothing crashes."""
    package = tmp_path / "collwise"
    shutil.copytree(ROOT / "src" / "collwise", package, ignore=shutil.ignore_patterns("*.so"))
    extension = package / "mpi" / "engine" / BUILT[0].name
    whole = BUILT[0].read_bytes()
    contents = {"half": whole[: len(whole) // 2], "empty": b""}
    if damage in contents:
        extension.write_bytes(contents[damage])
    show = "from collwise.mpi.engine.loading import SERVING; print(SERVING.name)"
    more = {"COLLWISE_ENGINE": "compiled", "PYTHONPATH": str(tmp_path)}
    ran = mpich().run_alone("-c", show, limit_s=LIMIT_S, **more)
    assert (ran.returncode, ran.stdout) == (0, "python\n"), ran.stderr
    said = f"collwise: no compiled engine, Python serves: .*({DAMAGE[damage]})"
    assert re.match(said, ran.stderr), ran.stderr
    assert ran.stderr.count("\n") == 1


@needs_extension
def test_a_library_without_a_function_or_with_odd_handles_is_left_to_python() -> None:
    ran = mpich().run_alone("-c", ODD_LIBRARIES, limit_s=LIMIT_S)
    assert (ran.stdout, ran.stderr) == ("done\n", "")


INTERPOSER = """
#include <stdio.h>
static int seen;
int PMPI_Isend(const void *, int, HANDLE, int, int, HANDLE, void *);
int MPI_Isend(const void *at, int n, HANDLE type, int peer, int tag, HANDLE comm, void *request) {
    seen += n == 1;
    return PMPI_Isend(at, n, type, peer, tag, comm, request);
}
__attribute__((destructor)) static void tell(void) {
    if (seen) {
        printf("%d sends\\n", seen);
    }
}
"""


@needs_compiler
@needs_extension
@pytest.mark.mpi
def test_a_preloaded_tool_sees_what_the_engine_calls(tmp_path: Path, mpi: Library) -> None:
    tool, folder = tmp_path / "tool.so", mpi.python.parents[1] / "lib"
    handle = {"mpich": "int", "openmpi": "void *"}[mpi.name]
    command = [
        str(COMPILER), "-shared", "-fPIC", f"-DHANDLE={handle}", "-xc", "-", "-o", str(tool),
        f"-L{folder}", f"-Wl,-rpath,{folder}", "-lmpi",
    ]  # fmt: skip
    subprocess.run(command, input=INTERPOSER, text=True, check=True, timeout=LIMIT_S)
    ran = mpi.run(2, "-c", PRELOADED, str(tool), WORKS, COLLWISE_NODE="messages")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.count("3 sends") == 2, ran.stdout


PRELOADED = """
import os, sys
tool, program = sys.argv[1:]
os.execve(sys.executable, [sys.executable, "-c", program], {**os.environ, "LD_PRELOAD": tool})
"""


ODD_LIBRARIES = """
from mpi4py import MPI
from collwise.mpi.engine import loading
from collwise.mpi.engine.compiled_plan import ProgramInstruction
engine = loading.COMPILED
missing = engine.connect(engine.__file__, 8, 24, 1, 1, 1, 1)
assert "MPI_Isend" in missing, missing
for width in (0, 2, 16):
    try:
        engine.connect(MPI.__file__, width, 24, 1, 1, 1, 1)
    except ValueError as problem:
        assert f"handles of {width} bytes" in str(problem)
    else:
        raise AssertionError(width)
try:
    engine.connect("/no/such/library.so", 4, 24, 1, 1, 1, 1)
except OSError as problem:
    assert "is not loaded" in str(problem)
class Odd:
    def __getattr__(self, name):
        return getattr(MPI, name)
class Wide(Odd):
    def _sizeof(self, one):
        return 16
class Without(Odd):
    __file__ = engine.__file__
    def _sizeof(self, one):
        return {4: 8, 8: 4}.get(MPI._sizeof(one), 24)
for odd, why in (
    (Wide(), "handles have [16] bytes, and only 4 or 8 are supported"),
    (Without(), "the MPI library has no MPI_Start, MPI_Wait"),
):
    loading.MPI = odd
    served = loading._load()
    assert served.name == "python" and why in served.why, served
start, copy = ProgramInstruction(engine.START, 0, 1), ProgramInstruction(engine.COPY, left=(7, 0))
for order, bad in (((), "x"), ((), ("x",)), ((), ProgramInstruction(9)), ((5,), start), ((), copy)):
    try:
        engine.Program(0, 0, 0, 0, 1, (), order, (bad,), 0, None)
    except (TypeError, ValueError):
        continue
    raise AssertionError(bad)
print("done")
"""


GROWTH = """
import sys
from mpi4py import MPI
from tests.mpi.programs import engines
grown, number, most_kib = sys.argv[1:]
kib = getattr(engines, grown)(MPI.COMM_WORLD, int(number))
assert kib < int(most_kib), f"{kib} KiB more"
"""


@pytest.mark.exhaustive
@pytest.mark.mpi
@pytest.mark.parametrize("engine", ["compiled", "python"])
@pytest.mark.parametrize(
    ("grown", "number", "most_kib"),
    [("grown_kib", "25000", "2048"), ("grown_by_sizes_kib", "100000", "4096")],
)
def test_memory_is_bounded(
    mpi: Library, engine: str, grown: str, number: str, most_kib: str
) -> None:
    """After a million equal calls, and after 100,000 with sizes of their own (`docs/design.md`)."""
    words = grown, number, most_kib
    ran = mpi.run(2, "-c", GROWTH, *words, limit_s=900, COLLWISE_ENGINE=engine)
    assert ran.returncode == 0, ran.stderr


ENDS = """
import sys
import numpy as np
import collwise as cw
from collwise.mpi.runtime import private_communicator, progress
from mpi4py import MPI
world, machine = MPI.COMM_WORLD, cw.Machine.hockney(alpha_s=1e-6, beta_s=1e-9)
private_communicator.END_LIMIT_S = progress.END_LIMIT_S = 0.5
kept = []
for transport in ("messages", "memory"):
    for state in (
        "started", "looked at", "dropped", "freed", "broken", "non-blocking", "not by all",
        "non-blocking, not by all",
    ):
        ours = cw.Comm(
            world.Dup(), machine=machine, algorithms={"broadcast": "chain"}, transport=transport
        )
        data = np.full(1000, world.rank == 0)
        request = ours.Bcast_init(data)
        if state == "non-blocking":
            request = ours.Ibcast(data)
        elif state == "non-blocking, not by all" and world.rank:
            request = ours.Ibcast(data)
        elif not state.endswith("not by all") or world.rank:
            request.Start()
        if state == "looked at":
            request.Test()
        elif state == "broken":
            ours._dispatch.duplicate.made.mark_broken(RuntimeError("interrupted"))
        if state not in ("dropped", "freed"):
            kept.append(request)
        del request
        if state == "freed":
            ours.Free()
        else:
            kept.append(ours)
if sys.argv[1] == "Finalize":
    MPI.Finalize()
"""


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("mpi", "engine", "ends"),
    [
        ("mpich", "compiled", "Finalize"),
        ("mpich", "python", "exit"),
        ("openmpi", "compiled", "exit"),
        pytest.param("mpich", "compiled", "exit", marks=pytest.mark.exhaustive),
        pytest.param("openmpi", "compiled", "Finalize", marks=pytest.mark.exhaustive),
    ],
    indirect=["mpi"],
)
def test_mpi_ends_with_requests_in_every_state(mpi: Library, engine: str, ends: str) -> None:
    """A collective that one rank never starts is given up after a while, as MPI's own are."""
    ran = mpi.run(3, "-c", ENDS, ends, limit_s=LIMIT_S, COLLWISE_ENGINE=engine)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


ORDER = """
from mpi4py import MPI
seen, library = [], MPI.Finalize
def finalize():
    seen.append("library")
    library()
MPI.Finalize = finalize
from collwise.mpi.runtime.progress import before_mpi_ends
before_mpi_ends(lambda: seen.append("ours"))
MPI.Finalize()
assert seen[0] == "ours", seen
"""


@pytest.mark.mpi
def test_ours_ends_before_the_librarys_finalize_begins(mpi: Library) -> None:
    """A helper thread that tests requests in the middle of MPI_Finalize breaks some libraries."""
    ran = mpi.run_alone("-c", ORDER, limit_s=LIMIT_S)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.exhaustive
@pytest.mark.parametrize("compiler", ["", "/bin/false"])
def test_a_wheel_has_the_extensions_that_a_compiler_made(tmp_path: Path, compiler: str) -> None:
    """And other files that are no modules; `tests/test_packaging.py` installs it."""
    environment = mpich().environment() | ({"CC": compiler} if compiler else {})
    command = ["uv", "build", "--quiet", "--out-dir", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=600)
    [wheel] = tmp_path.glob("*.whl")
    assert "-cp311-abi3-" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    for extension in ("_engine", "_event_loop", "_carrier"):
        assert any(extension in name and name.endswith("so") for name in names) == (not compiler)
    assert {"collwise/py.typed", "collwise/lab/poll_shim.c"} <= set(names)
    assert any(name.endswith(".jinja") for name in names)


WORKS = """
import numpy as np
import collwise as cw
from mpi4py import MPI
machine = cw.Machine.hockney(alpha_s=1e-6, beta_s=1e-9)
comm = cw.Comm(MPI.COMM_WORLD, machine=machine, effort="estimate")
result = np.zeros(1, int)
for _ in range(3):
    comm.Allreduce(np.array([5 + 45 * comm.rank]), result)
if comm.rank == 0:
    print(result[0])
"""


BELOW_MULTIPLE = """if True:
    import os
    import sys
    import mpi4py
    first, last = sys.argv[1].partition("+")[::2]
    number = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK")
    mpi4py.rc.thread_level = (last if number == "2" else "") or first
    import numpy as np
    from mpi4py import MPI
    import collwise as cw
    named = {"allreduce": "ring", "broadcast": "chain_segmented(segment=10k)", "allgatherv": "ring"}
    comm = cw.Comm(MPI.COMM_WORLD, profile=False, algorithms=named, record=True)
    rank, size, last = comm.rank, comm.size, comm.size - 1
    column = MPI.DOUBLE.Create_vector(3000, 1, 2).Commit()
    data, large = np.full(3000, rank + 1), np.zeros(300_000)  # integers: some CPUs keep other NaNs
    total, every, gaps = np.zeros((3, 3000), int), np.zeros((size, 3000), int), np.zeros((3000, 2))
    reals, most = data.astype(float), np.zeros(3000)
    for turn in range(20):
        comm.Allreduce(data, total[0])
        comm.Iallreduce(data, total[1]).Wait()
        comm.Iallreduce(reals, most, op=MPI.MAX).Wait()
        request = comm.Allreduce_init(data, total[2])
        request.Start()
        request.Wait()
        request.Free()
        assert (total == size * (size + 1) // 2).all() and (most == size).all()
        comm.Iallgather(data, every).Wait()
        assert (every == np.arange(1, size + 1)[:, None]).all()
        # A rank in the middle is in MPI, and has to forward more than a ring of memory holds.
        large[:], gaps[:, 0] = turn * (rank == 0), turn * (rank == 0)
        requests = [comm.Bcast_init(large), comm.Ibcast([gaps, 1, column])]
        requests[0].Start()
        if rank == last:
            cw.waitall(requests)
            MPI.COMM_WORLD.Send(data, 1)
        elif rank == 1:
            MPI.COMM_WORLD.Recv(data, last)
            data[:] = rank + 1
        cw.waitall(requests)
        assert (large == turn).all() and (gaps[:, 0] == turn).all() and not gaps[:, 1].any()
        requests[0].Free()
    many = [comm.Allreduce_init(data, total[0]) for _ in range(20)]  # more than there are lanes
    for _ in range(2):
        cw.startall(many)
        cw.waitall(many)
    if rank == 0:
        print(MPI.Query_thread() == getattr(MPI, "THREAD_" + first.upper()))
        for calls in comm.calls():
            print(calls.way, calls.method, calls.algorithm, sep=" ")
    for request in many:
        request.Free()
    column.Free()
    comm.Free()
"""


@needs_extension
@pytest.mark.mpi
@pytest.mark.parametrize(
    ("mpi", "level", "inside"),
    [
        ("mpich", "single", "memory"),
        ("openmpi", "single", "memory"),
        ("openmpi", "multiple+single", "memory"),  # not on all ranks
        ("mpich", "funneled", "messages"),
    ],
    indirect=["mpi"],
)
def test_below_thread_multiple_plans_stay_in_memory(mpi: Library, level: str, inside: str) -> None:
    """If its operator has a loop: all others are combined by MPI, which a helper may not call."""
    ran = mpi.run(3, "-c", BELOW_MULTIPLE, level, limit_s=LIMIT_S, COLLWISE_NODE=inside)
    assert (ran.returncode, ran.stderr) == (0, "")
    at_level, *lines = ran.stdout.splitlines()
    served = [line.split()[2] != "library" for line in lines]
    assert at_level == "True"
    # The fourth kind combines by MAX, which has no loop for real numbers.
    assert served == [inside == "memory" and number != 2 for number in range(len(served))], lines


@pytest.mark.mpi
@pytest.mark.parametrize(("begin", "end"), [("", "MPI_Init was not called"), ("MPI.Init()", "")])
def test_a_session_without_init_is_refused(mpi: Library, begin: str, end: str) -> None:
    """In a sentence, and nothing is aborted; beside MPI_Init a session's communicators serve."""
    script = f"""
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
{begin}
session = MPI.Session.Init()
group = session.Create_group("mpi://WORLD")
comm = MPI.Intracomm.Create_from_group(group)
import collwise as cw
try:
    comm = cw.Comm(comm)
    comm.Bcast(bytearray(9))
except cw.errors.InvalidArgument as problem:
    print(problem)
comm.Free()
group.Free()
session.Finalize()
if MPI.Is_initialized():
    MPI.Finalize()
"""
    ran = mpi.run(2, "-c", script, limit_s=60)
    assert (ran.returncode, ran.stdout.count("MPI_Init was not called")) == (0, 2 * bool(end))
