"""What `collwise doctor` finds: MPI's answers are made up, files and processes are real."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest
from tests.profiles.example import profile

from collwise.doctor import checks
from collwise.doctor.checks import CheckResult
from collwise.errors import InvalidArgument, LabUnavailable, NoMPI
from collwise.lab import requirements
from collwise.profiles.fingerprint import local_fingerprint
from collwise.profiles.profile import Profile, with_measurements
from collwise.system import launcher
from collwise.system.launcher import INSTALL, Launched

LIBRARY: dict[str, Any] = {
    "library": "MPICH 5.0.2",
    "standard": "4.1",
    "multiple": True,
    "engine": "compiled",
    "why": "",
    "no_memory": "",
    "size": 1,
    "persistent": True,
    "own": "",
}
HERE = local_fingerprint("MPICH 5.0.2", "one node")
NO_TUN = requirements.Requirement("/dev/net/tun", "it is not there", "load it")
Look = Callable[..., dict[str, list[CheckResult]]]


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Look:
    """Run the checkup with these answers of MPI alone and of two ranks; findings by subject."""
    monkeypatch.setenv("COLLWISE_PROFILE", str(tmp_path / "profile.json"))
    monkeypatch.setattr(checks, "launched", lambda: None)
    monkeypatch.setattr(checks, "find_mpiexec", lambda: "/bin/mpiexec")
    monkeypatch.setattr(checks, "command_line", lambda n, line: ["/bin/mpiexec", str(n), *line])
    monkeypatch.setattr(checks, "usable_cores", lambda: 8)
    monkeypatch.setattr(requirements, "unmet", lambda: [NO_TUN])

    def run(
        alone: dict[str, Any] | None = LIBRARY,
        sizes: tuple[int, ...] = (2, 2),
        trouble: str = "no trouble",
    ) -> dict[str, list[CheckResult]]:
        def ask(command: list[str]) -> tuple[list[Any], str]:
            if command[0] == "/bin/mpiexec":
                return [LIBRARY | {"size": size} for size in sizes], trouble
            return ([] if alone is None else [alone]), trouble

        monkeypatch.setattr(checks, "ask", ask)
        told: list[float] = []
        found: dict[str, list[CheckResult]] = {}
        for finding in checks.checkup(lambda what, done: told.append(done)):
            found.setdefault(finding.what, []).append(finding)
        assert len(told) == 3
        assert told == sorted(told)
        assert all(f.remedy for all_of in found.values() for f in all_of if f.status == "wrong")
        return found

    return run


def test_all_is_well(look: Look) -> None:
    found = look()
    assert {
        f.status
        for name, all_of in found.items()
        for f in all_of
        if name not in ("profile", "emulated hosts (lab)")
    } == {"ok"}
    assert found["MPI library"][0].seen.startswith("MPICH 5.0.2 (MPI 4.1), mpi4py ")
    assert found["launcher"][0].seen == "/bin/mpiexec starts 2 ranks that see each other"
    assert "MPI_THREAD_MULTIPLE" in found["threads"][0].seen
    assert "persistent collectives" not in found


def test_no_library(look: Look) -> None:
    """Nothing that depends on it is tried."""
    found = look(None, trouble="libmpi.so: no such file")
    assert found["MPI library"] == [
        CheckResult("wrong", "MPI library", "libmpi.so: no such file", INSTALL)
    ]
    assert found["launcher"][0].status == "note"
    assert found["launcher"][0].seen.endswith("not tried without an MPI library")
    assert not {"profile", "permissions", "threads"} & found.keys()


def test_a_library_without_a_provider(look: Look) -> None:
    seen = "OFI fi_getinfo() failed: No data available"
    (found,) = look(None, trouble=seen)["MPI library"]
    assert (found.status, found.seen) == ("wrong", seen)
    assert "FI_PROVIDER" in found.remedy


def test_a_library_that_does_not_start(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was told to install one."""
    (finding,) = look(None, trouble="No resources are available")["MPI library"]
    assert finding.seen == "it is there and does not start: No resources are available"
    assert "install" not in finding.remedy
    monkeypatch.setattr(checks, "version", lambda name: "3.1.4")
    (finding,) = look(None, trouble="module 'mpi4py.MPI' has no attribute 'buffer'")["mpi4py"]
    assert (finding.seen, finding.remedy) == ("3.1.4 is too old", "install mpi4py 4.0 or newer")


def test_little_shared_memory(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "shared memory" not in look()
    monkeypatch.setattr(checks, "LEAST_SHARED", 1 << 62)
    (finding,) = look()["shared memory"]
    assert re.fullmatch(r"/dev/shm has room for [\d.,]+ .?i?B", finding.seen)


def test_faults_and_needs_of_libraries(look: Look) -> None:
    first, second = look(LIBRARY | {"library": "MPICH 4.0.2"})["MPI library"]
    assert (first.status, second.status) == ("ok", "note")
    assert "Allgather_init leaves wrong data" in second.seen
    need = "the job must start with OMPI_MCA_coll_tuned_use_dynamic_rules=1"
    (finding,) = look(LIBRARY | {"own": need})["library's algorithms"]
    assert need in finding.seen


def test_a_user_without_a_home(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    """There was no table at all."""
    lost = InvalidArgument("the folder of profiles", "there is no home", "set HOME")
    monkeypatch.setattr(checks, "default_path", mock.Mock(side_effect=lost))
    found = look()
    (finding,) = found["profile"]
    assert finding[2:] == ("the folder of profiles: there is no home", "set HOME")
    assert found["emulated hosts (lab)"]


def test_a_machine_that_refuses_a_lab(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a chroot doctor told to run doctor."""
    lost = LabUnavailable("a lab", "the system refused (mount)", "`collwise doctor` says")
    monkeypatch.setattr(requirements, "unmet", list)
    monkeypatch.setattr(checks, "Cluster", mock.Mock(side_effect=lost))
    (finding,) = look()["emulated hosts (lab)"]
    assert (finding.status, finding.seen) == ("note", "the system refused (mount)")
    assert "doctor" not in finding.remedy


def test_an_old_library(look: Look) -> None:
    reason = {"engine": "python", "why": "it is not built (no module)"}
    found = look(LIBRARY | {"multiple": False, "persistent": False} | reason)
    seen = "Python, whose calls cost several times as much: it is not built (no module)"
    assert found["engine"][0][:3] == ("note", "engine", seen)
    assert "C compiler" in found["engine"][0].remedy
    assert found["MPI library"][0].status == "ok"
    assert found["threads"][0].status == "note"
    assert "less than MPI_THREAD_MULTIPLE" in found["threads"][0].seen
    assert found["persistent collectives"][0].status == "note"


def test_a_node_whose_ranks_cannot_share_memory(look: Look) -> None:
    assert look()["memory inside a node"][0].status == "ok"
    [finding] = look(LIBRARY | {"no_memory": "rank 0 cannot make the memory"})[
        "memory inside a node"
    ]
    assert finding[:2] == ("note", "memory inside a node")
    assert finding.seen == "not possible here: rank 0 cannot make the memory"


def test_ranks_that_are_alone(look: Look) -> None:
    [found] = look(sizes=(1, 1))["launcher"]
    assert found.status == "wrong"
    assert "each a world of one" in found.seen
    assert "another MPI than MPICH 5.0.2" in found.remedy


@pytest.mark.parametrize("sizes", [(), (2,), (2, 2, 2)])
def test_ranks_that_do_not_start(look: Look, sizes: tuple[int, ...]) -> None:
    [found] = look(sizes=sizes, trouble="not enough slots")["launcher"]
    assert found.status == "wrong"
    assert found.seen == "/bin/mpiexec did not start 2 ranks: not enough slots"


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        (
            "find_mpiexec",
            NoMPI("starting ranks", "no mpiexec was found", "install one"),
            ("wrong", "starting ranks: no mpiexec was found", "install one"),
        ),
        (
            "command_line",
            PermissionError(13, "Permission denied"),
            (
                "wrong",
                "[Errno 13] Permission denied",
                "mend that, or name another in COLLWISE_MPIEXEC",
            ),
        ),
        (
            "launched",
            [Launched("srun", 0, 4)],
            ("note", "doctor itself runs under srun", "run it alone, without a launcher"),
        ),
    ],
)
def test_launchers(
    look: Look, monkeypatch: pytest.MonkeyPatch, name: str, answer: Any, expected: tuple[str, ...]
) -> None:
    """There is none, it cannot run, or it runs us."""
    monkeypatch.setattr(checks, name, mock.Mock(side_effect=answer))
    [found] = look()["launcher"]
    assert (found.status, found.seen, found.remedy) == expected


@pytest.mark.parametrize(("cores", "status"), [(1, "note"), (3, "note"), (4, "ok"), (128, "ok")])
def test_cores(look: Look, monkeypatch: pytest.MonkeyPatch, cores: int, status: str) -> None:
    monkeypatch.setattr(checks, "usable_cores", lambda: cores)
    [found] = look()["cores"]
    assert (found.status, found.seen) == (status, f"{cores} usable")


def test_no_profile_yet(look: Look, tmp_path: Path) -> None:
    found = look()
    assert found["profile"][0].status == "note"
    assert found["profile"][0].remedy == "run `collwise tune`"
    assert found["permissions"] == [
        CheckResult("ok", "permissions", f"profiles can be saved in {tmp_path}")
    ]


GOOD = profile(fingerprint=HERE)
ABACUS = profile(fingerprint=msgspec.structs.replace(HERE, cpu_model="an abacus"))
NOISY = with_measurements(GOOD, verdict="noisy: so so", advice=("start fewer ranks",))


def by_engine(engine: str) -> Profile:
    made = msgspec.structs.replace(GOOD.provenance, engine=engine)
    return with_measurements(GOOD, provenance=made)


@pytest.mark.parametrize(
    ("saved", "status", "seen", "remedy"),
    [
        (GOOD, "ok", r", of 2025-01-02T03:04:05\+00:00: stable$", "^$"),
        (NOISY, "note", ": noisy: so so$", "^start fewer ranks$"),
        (by_engine("compiled"), "ok", ": stable$", "^$"),
        (by_engine("python"), "note", "with the python engine, while compiled serves$", "tune"),
        (ABACUS, "wrong", "'an abacus' there", "measure here"),
        (None, "wrong", "", "measure again"),
    ],
)
def test_profiles(
    look: Look, tmp_path: Path, saved: Profile | None, status: str, seen: str, remedy: str
) -> None:
    """None stands for a damaged file.  A noisy one was called ok."""
    path = tmp_path / "profile.json"
    path.write_text("{" if saved is None else saved.to_json())
    [found] = look()["profile"]
    assert (found.status, found.seen.startswith(str(path))) == (status, True)
    assert re.search(seen, found.seen)
    assert re.search(remedy, found.remedy)


def test_a_transport_that_is_none(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLWISE_NODE", "pigeons")
    [found] = look()["memory inside a node"]
    assert (found.status, found.seen) == ("wrong", "COLLWISE_NODE=pigeons names nothing")


def test_where_no_profile_can_be_saved(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("COLLWISE_PROFILE", str(tmp_path / "file" / "profile.json"))
    [found] = look()["permissions"]
    assert found.status == "wrong"
    assert found.seen == f"{tmp_path / 'file'} cannot be written"


# --- asking other processes ---


def ask(code: str) -> tuple[list[dict[str, Any]], str]:
    return launcher.ask([sys.executable, "-c", code])


def test_what_processes_complain_of() -> None:
    """The last line with letters counts, or what Open MPI says first in its box, or the code."""
    assert ask("import sys; sys.exit('first\\nlast words\\n')") == ([], "last words")
    assert ask("import sys; sys.exit('last words\\n-----\\n \\n')") == ([], "last words")
    line = "-" * 74
    boxed = f"{line}\\nThere are not enough\\nslots.\\n\\nEither request fewer.\\n{line}\\n"
    assert ask(f"import sys; sys.exit('{boxed}')") == ([], "There are not enough slots.")
    assert ask("import sys; sys.exit(3)") == ([], "exit code 3, no message")
    no_provider = "OFI fi_getinfo() failed: No data available"  # what Intel MPI says first
    assert ask(f"import sys; sys.exit('{no_provider}\\nlast words')") == ([], no_provider)


def test_processes_that_do_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "ANSWER_S", 0.3)
    told, trouble = ask("import time; time.sleep(60)")
    assert told == []
    assert "no answer within" in trouble
    monkeypatch.setattr(launcher, "ANSWER_S", 1.0)
    said = "import sys, time; print('no such proxy', file=sys.stderr, flush=True); time.sleep(60)"
    assert ask(said)[1] == "no answer within 1 s: no such proxy"


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    told, trouble = launcher.ask([str(tmp_path / "nothing")])
    assert told == []
    assert "No such file" in trouble


def test_answers_on_one_line() -> None:
    """Launchers forward what two processes say in any pieces."""
    told = "collwise:" + json.dumps(LIBRARY)
    torn = told[:20] + told + "\n" + told[20:]
    texts = {f"{told}\n{told}\n": 2, f"{told}{told}\n\n": 2, f"\n{told}\n[0] a banner\n": 1, "": 0}
    for text, count in texts.items():
        assert list(launcher._answers(text)) == [LIBRARY] * count
    assert list(launcher._answers(torn)) == [LIBRARY]


def test_what_processes_answer() -> None:
    """Really asked."""
    told, _ = ask("print('a banner\\ncollwise:{\"a\": 1}collwise:{}\\nbye')")
    assert told == [{"a": 1}, {}]


def test_a_machine_that_cannot_emulate_hosts(look: Look) -> None:
    """Is none that is wrong."""
    (lab,) = look()["emulated hosts (lab)"]
    assert lab == ("note", "emulated hosts (lab)", "needs /dev/net/tun: it is not there", "load it")
