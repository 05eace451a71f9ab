"""The memory protocol of a node in all interleavings of its ranks; and that its faults are found.

`tests/mpi/core/explorer.c` says how they are explored, `node_scenarios.c` there what ranks do.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.case import in_case
from tests.mpi.launching import ROOT

CORE = ROOT / "src" / "collwise" / "mpi" / "engine" / "core"
HERE = ROOT / "tests" / "mpi" / "core"
COMPILER = shutil.which("cc") or shutil.which("gcc")
needs_linux = pytest.mark.skipif(
    COMPILER is None or sys.platform != "linux", reason="there is no C compiler, or no futex"
)
LIMIT_S = 120
SMALL = {
    "LETTERS": "2", "SHORT": "8", "PIECES": "2", "PIECE": "72", "RING": "192", "LANES": "2",
    "PART": "16",
}  # fmt: skip
"""What node.h gets instead of its own numbers, so that few messages fill everything.  In a ring
there is room for two pieces, but for one of the longest only."""


RELAXED, ACQUIRES, RELEASES = (f"memory_order_{one}" for one in ("relaxed", "acquire", "release"))
FULL = "atomic_store(&letter->full, ++node->sent[reader])"
PUBLISHED = "ring_bell(&node->beds[reader]);"
COPIED = "atomic_fetch_or(&loan->done, part->bit)"
TO = "atomic_store(&loan->to, (uintptr_t)into)"
RETURNED = "atomic_load(&row->read) - letters[n]"
READ = "atomic_store(&row_of(node, writer, node->rank)->read, ++node->received[writer])"
LEFT = "atomic_fetch_sub(&node->rings[writer].pieces[piece].left, 1)"
LOOK = "atomic_load(&letter->full)"
HELD = "int held = (word & HOLDERS) != 0;"
ROOM = "known_read[reader] < LETTERS;"
PIECE_ROOM = "end - node->first < PIECES"


def weaker(operation: str, order: str) -> tuple[str, str]:
    """An atomic operation, and the same with less order."""
    name, arguments = operation.split("(", 1)
    return operation, f"{name}_explicit({arguments[:-1]}, {order})"


FAULTS: dict[str, dict[str, tuple[str, str]]] = {
    "a race": {
        "a letter is told of before it is written": weaker(FULL, RELAXED),
        "a letter is read before it is there": weaker(LOOK, RELAXED),
        "letters are given back before they are read": weaker(READ, RELAXED),
        "letters are written before they are given back": weaker(
            "node->known_read[reader] = atomic_load(&row->read)", RELAXED
        ),
        "pieces are given back before they are read": weaker(LEFT, RELAXED),
        "pieces are written before they are given back": weaker(
            "atomic_load(&ring->pieces[node->first % PIECES].left)", RELAXED
        ),
        "a lender writes where the reader still is": weaker(TO, RELAXED),
        "a loan is its owner's before it was read": (RETURNED, "1 + " + RETURNED),
        "what the lender copied is read too early": weaker(
            "done = atomic_load(&loan->done)", RELAXED
        ),
        "pieces are put over each other": (
            "begin + (uint64_t)nbytes - node->free_to <= RING", "1"
        ),
        "a ring begins anew while it is in use": ("if (node->first == node->end) {", "{"),
    },
    "a wake-up was lost": {
        "a letter is seen after its writer looked at `asleep`": weaker(FULL, RELEASES),
        "a reader gives back after it looked at `asleep`": weaker(READ, RELEASES),
        "`asleep` is seen as it was": weaker("atomic_load(&bed->asleep)", ACQUIRES),
        "`asleep` is told after the last look": weaker("atomic_store(&bed->asleep, 1)", RELEASES),
        "the last look sees what was": weaker(LOOK, ACQUIRES),
        "`asleep` is looked at before a letter is told of": (
            f"{FULL};",
            f"int asleep = atomic_load(&node->beds[reader].asleep); {FULL}; if (asleep)",
        ),
        "`asleep` is never told": ("atomic_store(&bed->asleep, 1);", ""),
        "a writer wakes nobody": (PUBLISHED, ""),
        "a lender wakes nobody": ("ring_bell(&node->beds[readers[n]]);", ""),
        "parts of a lender are never over": (f"{COPIED};", ""),
        "a reader wakes nobody": (f"{READ};\n    ring_bell(&node->beds[writer]);", f"{READ};"),
        "nobody sees that the bell rang": ("atomic_fetch_add(&bed->bell, 1);", ""),
        "the bell is looked at too late": (
            "FUTEX_WAIT, bell,", "FUTEX_WAIT, atomic_load(&node->beds[node->rank].bell),"
        ),
        "one letter too many in a row": (ROOM, ROOM.replace("<", "<=")),
        "room is looked for in one row": (
            "has_room(node, readers[n])) {\n            return -1;",
            "has_room(node, *readers)) {\n            return -1;",
        ),
        "counters of pieces wrap": ("while (node->first != node", "while (node->first < node"),
    },
    "room is lost": {
        "a piece is given back by one of its readers": (f"(uint32_t)number, {RELAXED}", "1, 0"),
        "one piece too many in a ring": (PIECE_ROOM, PIECE_ROOM.replace("<", "<=")),
    },
    "a wrong byte": {
        "a piece goes on behind the ring's end": ("place + (uint64_t)nbytes > RING", "0"),
        "counters of letters wrap": ("full) != node->received", "full) < node->received"),
    },
    "ranks are told differently": {
        "a lane is given while ranks have it": (HELD, "int held = 0;"),
        "a lane is given while one rank has it": (HELD, HELD.replace("!= 0", "> 1")),
        "turns of lanes have too few bits": ("TURN = 27", "TURN = 26"),
        "who comes late has no lane": (
            "return held && (word >> OWNER & TURNS) == turn ? lane : NULL;", "return NULL;"
        ),
        "who decides does not look again": (
            "while (!atomic_compare_exchange_weak(", "while (0 && !atomic_compare_exchange_weak("
        ),
        "a turn is decided twice": ("next | turn << (TURN + OWNER)", "next"),
        "who comes late has another's lane": ("held && (word >> OWNER & TURNS) == turn", "held"),
    },
    "a lane is lost": {
        "a lane is never given back": ("atomic_fetch_sub(&lane->claim->word, 1);", ""),
    },
}  # fmt: skip
"""By how the explorer sees them: texts of node.c, and what stands there instead."""


def with_small_numbers(header: str) -> str:
    for name, number in SMALL.items():
        header, found = re.subn(rf"\b({name} =) [^,]+,", rf"\1 {number},", header)
        assert found == 1, f"{name} stands {found} times in node.h: adapt SMALL"
    return header


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Builds the explorer for a text of node.c."""
    folder = tmp_path_factory.mktemp("explorer")
    (folder / "node.h").write_text(with_small_numbers((CORE / "node.h").read_text()))

    def compiled(*words: object) -> None:
        command = [COMPILER, "-std=c11", "-O1", "-g", "-Wall", f"-I{folder}", f"-I{HERE}", *words]
        ran = subprocess.run(
            [*map(str, command)], capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        assert ran.returncode == 0, ran.stderr

    explorer, scenarios, inside = (folder / f"{name}.o" for name in ("explorer", "scen", "inside"))
    compiled("-O2", "-c", HERE / "explorer.c", "-o", explorer)
    compiled("-fsanitize=thread", "-c", HERE / "node_scenarios.c", "-o", scenarios)

    def build_with(source: str) -> Path:
        (folder / "node.c").write_text(source)
        compiled("-fsanitize=thread", "-c", HERE / "node_inside.c", "-o", inside)
        compiled(explorer, scenarios, inside, "-o", folder / "explore")  # without the sanitizer
        return folder / "explore"

    return build_with


def explore(program: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Words: deviations, and perhaps a scenario."""
    command = [str(program), *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert not ran.stderr
    return ran


@needs_linux
def test_nothing_is_wrong_in_any_interleaving(build: Callable[[str], Path]) -> None:
    """And where a run stops, since an earlier one was in the same state, nothing is left out."""
    program = build((CORE / "node.c").read_text())
    ran = explore(program, 2)
    assert ran.returncode == 0, ran.stdout
    for scenario in ("lanes of two ranks", "messages both ways", "a slow reader"):
        once, again = (explore(program, 1, scenario, *more).stdout for more in ((), ("again",)))
        assert " ends " in once
        assert once.partition(";")[0] == again.partition(";")[0]


TWO_RANKS = (
    "lanes of two ranks", "the last lanes", "short messages", "long messages",
    "messages both ways", "around the ring", "counters begin anew",
)  # fmt: skip


@needs_linux
@pytest.mark.exhaustive
def test_nothing_is_wrong_between_two_ranks_with_more_deviations(
    build: Callable[[str], Path],
) -> None:
    program = build((CORE / "node.c").read_text())
    for scenario in TWO_RANKS:
        ran = explore(program, 3, scenario)
        assert ran.returncode == 0, ran.stdout


@needs_linux
def test_each_fault_is_found(build: Callable[[str], Path]) -> None:
    source = (CORE / "node.c").read_text()
    for seen, faults in FAULTS.items():
        for fault, (text, instead) in faults.items():
            with in_case(fault):
                assert source.count(text) == 1, f"node.c changed: adapt {text}"
                program = build(source.replace(text, instead))
                every = (explore(program, deviations) for deviations in range(3))
                found = next((ran for ran in every if ran.returncode), None)
                assert found, "nothing is wrong in any interleaving"
                assert found.returncode == 1
                assert seen in found.stdout
