"""Machines with levels: their costs, how people write them, what is refused, presets."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import collwise as cw
from collwise.errors import InvalidArgument
from collwise.model.bounds import broadcast
from collwise.model.level_notation import load, parse
from collwise.model.level_presets import LEVEL_PRESETS, LevelPreset
from collwise.model.levels import Levels, OneLevel
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.model.placement import Placement
from collwise.schedule.problem import Problem

F = Fraction
INSIDE, ACROSS = Machine.postal(t0_s="1e-6", lam=2), Machine.postal(t0_s="4e-6", lam=5)
PLACED = Placement.regular(2, 3)
US = F(1, 10**6)


def test_costs_by_level_and_size() -> None:
    curve = measured([[(8, "4e-6", 5), (1024, "2e-5", 2)]])
    machine = cw.Machine.levels([INSIDE, curve], PLACED, ports=[[(0, "1e-6"), (1000, "5e-6")]])
    assert machine.between(0, 1, 8) == INSIDE.message(8)
    assert machine.between(0, 3, 1024) == curve.message(1024)
    assert machine.message(1024) == INSIDE.message(1024)  # the least of all
    assert [machine.port(1, n) for n in (0, 500, 2000)] == [US, 3 * US, 9 * US]
    assert machine.port(2, 8) == 0
    assert machine.sizes() == (0, 8, 1000, 1024)
    assert machine.planning_lam(8) == 5
    assert machine.shares_ports
    assert not Machine.levels([INSIDE, ACROSS], PLACED, ports=[0]).shares_ports
    assert machine.combine(8) is None
    assert machine.placed(Placement.of("abab")).placement.ranks == 4


def test_lower_bounds_know_where_combining_changes_its_slope() -> None:
    law = measured([[(1, "1e-6", 2), (1 << 20, "1e-4", 2)]])
    law = law.with_combining([(1, "1e-6"), (4096, "1.1e-6"), (1 << 20, "1e-2")])
    levels, problem = Machine.levels([law, law], PLACED), Problem("reduce", 6, 1 << 16, itemsize=8)
    for machine in (levels.ports_only(), OneLevel(levels, 2)):
        assert problem.lower_bounds(machine) == problem.lower_bounds(law)
        assert machine.planning_lam(8) == 2
    assert OneLevel(levels, 2).describe() == f"level 2 of {levels.describe()}"


def test_all_bytes_of_a_broadcast_leave_the_roots_group() -> None:
    machine = parse("2x2: 1us+1ns/B,2us+1ns/B,1us+10ns/B; 1us+2ns/B,9us+10ns/B")
    bound = broadcast(machine, 4, 1000)
    assert bound.time == 19 * US  # in one message, as halves would wait for the group's port
    assert "all bytes leave the root's" in bound.argument
    machine = parse("2x2: 1us+1ns/B,2us+1ns/B; 1ns+10ns/B,9us+10ns/B")
    assert broadcast(machine, 4, 1000).time == 14 * US  # one of two ranks sends 500 bytes


@pytest.mark.no_cover
def test_long_broadcasts_come_near_to_their_bound() -> None:
    machine = LEVEL_PRESETS["emulated"].machine("4x3")
    made = cw.plan("broadcast", ranks=12, nbytes=100_000, machine=machine)
    assert made.bound.time <= made.choice.predicted <= made.bound.time * F(5, 4)


def test_an_outer_level_may_be_faster_and_it_is_said() -> None:
    machine = Machine.levels([ACROSS, INSIDE], PLACED)
    assert machine.oddities(8) == ("messages between nodes are faster than those inside a node",)
    assert Machine.levels([INSIDE, ACROSS], PLACED).oddities(8) == ()
    late = Machine.postal(t0_s="5e-7", lam=40)  # it arrives later, though its sender goes on sooner
    (said,) = Machine.levels([INSIDE, late], PLACED).oddities(8)
    assert said == (
        "messages between nodes keep their sender busy for a shorter time than those inside a node"
    )


@pytest.mark.parametrize(
    "law",
    [
        Machine.hockney(alpha_s=1, beta_s=1),
        Machine.loggp(L_s=1, o_s=1, g_s=1, G_s=1),
        cw.presets["paragon"].machine,
        Machine.levels([INSIDE, ACROSS], PLACED),
    ],
    ids=lambda law: law.kind,
)
def test_levels_stand_on_the_postal_law_only(law: Machine) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Machine.levels([INSIDE, law], PLACED)
    assert caught.value.seen == f"a level whose law is {law.kind}"
    assert caught.value.remedy.startswith("levels stand on the postal law only")


def test_written_in_a_line() -> None:
    machine = parse(
        "2 racks x 4 nodes x 3 ranks, round robin: 200ns,2,300ns; 2us+0.8ns/B,4; 9us,20us"
    )
    assert machine.placement == Placement.regular(2, 4, 3, round_robin=True)
    assert machine.at(1, 5) == (F("200e-9"), F("400e-9"))
    assert machine.at(2, 1000) == (F("2.8e-6"), F("11.2e-6"))
    assert machine.at(3, 5) == (F("9e-6"), F("20e-6"))
    assert machine.port(1, 5) == F("300e-9")
    assert machine.describe() == (
        "2 racks × 4 nodes × 3 ranks; inside a node t0 = 200 ns, λ = 2, port 300 ns; between nodes"
        " t0 = 2.0008 µs, λ = 4 for a byte; between racks t0 = 9 µs, λ = 2.222"
    )
    assert "λ = 2, port 301 ns for a byte;" in parse("2x2: 1us,2,300ns+1ns/B; 2us,4").describe()
    assert parse("3+5+4: 1us,1; 2us,2").placement == Placement.nodes([3, 5, 4])
    assert parse("2x(3+5): 1us,1; 1us,1; 2us,2").placement == Placement.nodes([3, 5], [2])
    racked = parse("4 nodes × 3 ranks, round robin, two racks: 1us,1; 1us,1; 2us,2").placement
    assert racked == Placement.nodes([3] * 4, [2], round_robin=True)
    assert parse("3+5, 2 sites: 1us,1; 1us,1; 2us,2").placement == Placement.nodes([3, 5], [2])
    assert parse("7: 1us,2").describe() == "7 ranks; in the network t0 = 1 µs, λ = 2"
    assert parse("2x2: 1us,2; 1us,1e3").at(2, 5) == (US, 1000 * US)
    assert parse("2x2: 1ns+1ns/B,1; 1us,5us+1ns/B").at(2, 100) == (US, F("5.1e-6"))


def test_memory_that_ranks_of_a_group_share(tmp_path: Path) -> None:
    machine = parse("2x4: 60ns,200ns+1ns/B,300ns,read 80ns+1ns/B; 2us,4")
    assert machine.shares_memory
    assert machine.at(1, 5) == (F("60e-9"), F("205e-9"))
    assert machine.port(1, 5) == F("300e-9")
    assert machine.receipt_at(1, 20) == F("100e-9")
    assert machine.receipt_at(2, 20) == 2 * US
    assert machine.receipt(20) == F("100e-9")
    assert machine.sizes() == (0, 1 << 20)
    assert machine.describe() == (
        "2 nodes × 4 ranks; inside a node t0 = 60 ns, λ = 3.35, read 81 ns, port 300 ns for a"
        " byte; between nodes t0 = 2 µs, λ = 4"
    )
    inside, outside = OneLevel(machine, 1), OneLevel(machine, 2)
    assert (inside.shares_memory, inside.independent_ports) == (True, False)
    assert inside.ports_only() is inside
    assert inside.with_overhead(US).receipt(20) == F("1.1e-6")
    assert (outside.shares_memory, outside.independent_ports) == (False, True)
    assert outside.receipt(20) == outside.message(20).gap == 2 * US
    assert parse("8: 1us,2,read 1us").describe() == (
        "8 ranks; in the network t0 = 1 µs, λ = 2, read 1 µs for a byte"
    )
    path = tmp_path / "levels.toml"
    assert machine.by_level[0].law.describe() == (
        "shared memory: measured from 0 to 1048576 bytes in 1 protocol segment; a read of a byte"
        " takes 81 ns"
    )
    path.write_text(FILE.replace('port = "300ns+1ns/B"', 'read = [[0, "50ns"], [100, "150ns"]]'))
    assert load(path).receipt_at(1, 50) == F("100e-9")


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("4x4: 1us,2; 2us,2,read 1us", "level 2 is memory"),
        ("4x4: 1us,2,read 1; 2us,2", "'1' is no time"),
        ("4x16", "no costs follow"),
        ("4x0: 1us,2; 2us,2", "is no product of group sizes"),
        ("4x4, sideways: 1us,2; 2us,2", "is no product of group sizes"),
        ("4x4, two, three: 1us,2; 2us,2; 2us,2", "is no product of group sizes"),
        ("4x4, no racks: 1us,2; 2us,2; 2us,2", "is no product of group sizes"),
        ("4x4, 3 racks: 1us,2; 2us,2; 2us,2", "4 nodes are not 3 equal groups"),
        ("2x4x4, 2 racks: 1us,2; 2us,2; 2us,2", "says twice what is in racks"),
        ("(2x3)+5: 1us,2; 2us,2", "'(2x3)+5' is no product of group sizes"),
        ("9999x9999: 1us,2; 2us,2", "99980001 ranks are too many"),
        ("2x(1+2+3): 1us,2; 2us,2; 2us,2", "3 nodes are not 2 equal groups"),
        ("4x4: 1us,2", "the placement has 2 levels, the machine 1"),
        ("4x4: 1us; 2us,2", "number of terms: 1"),
        ("4x4: 1us,; 2us,2", "a term is empty"),
        ("4x4: 1us,2; 2us,2,3us", "2 ports, and 1 level whose groups can have one"),
        ("4x4: 1us,1/2; 2us,2", "a message arrives before it is sent"),
        ("4x4: 1,2; 2us,2", "'1' is no time"),
        ("4x4: 1us,fast; 2us,2", "it is no time with a unit"),
        ("4x4: 0s,0s; 2us,2", "0 is not above 0"),
    ],
)
def test_lines_that_are_refused(text: str, seen: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse(text)
    assert seen in caught.value.seen


FILE = """
placement = "2 sites x 2 nodes x 2 ranks"
[[levels]]
name = "box"
costs = "200ns,2"
port = "300ns+1ns/B"
[[levels]]
name = "site"
table = [[8, "1us", 3], [1024, "4us", "2.5"]]
port = [[0, "1us"], [1024, "2us"]]
[[levels]]
costs = "10us,50us"
"""


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "levels.toml"
    path.write_text(FILE)
    machine = load(path)
    assert [level.name for level in machine.by_level] == ["box", "site", "network"]
    assert machine.placement == Placement.regular(2, 2, 2)
    assert machine.at(2, 1024) == (4 * US, 10 * US)
    assert machine.port(2, 512) == F("1.5e-6")
    assert machine.port(1, 100) == F("400e-9")
    path.write_text(
        FILE.replace("placement =", "#").replace(
            '[[levels]]\nname = "box"',
            'groups = [[[0, 1], [2, 4], [3]], [[0, 1], [2, 3, 4]]]\n[[levels]]\nname = "box"',
        )
    )
    assert load(path).placement == Placement.of([0, 0, 1, 2, 1], [0, 0, 1, 1, 1])
    path.write_text(FILE, encoding="utf-8-sig")  # as some editors write it
    assert load(path) == machine


def test_messages_that_cost_more() -> None:
    """Everywhere alike where all messages cost alike; inside a node hardly at all."""

    def costs(written: str) -> list[Fraction]:
        machine = parse(written).with_overhead(F("0.5e-3"))
        assert isinstance(machine, Levels)
        return [machine.at(1, 8).gap, machine.at(2, 8).gap, machine.port(1, 8)]

    assert costs("2x8: 1ms,2; 1ms,9") == [F("1.5e-3"), F("1.5e-3"), 0]
    assert costs("4x4: 10us,2,1ms; 50us,9") == [F("15e-6"), F("75e-6"), F("1.5e-3")]


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("placement", "place", "unknown field"),
        (
            'placement = "2 sites',
            'groups = []\nplacement = "2 sites',
            "placement and groups say so",
        ),
        ("placement =", "#", "neither placement nor groups says so"),
        ('costs = "10us,50us"', "", "the costs of level 3: neither costs nor table says so"),
        ('costs = "10us,50us"', 'costs = "10us,far"', "λ or when it arrives, 'far': it is no time"),
        ('name = "site"', 'name = "box"', "two kinds of groups are called 'box'"),
        ('"1us", 3]', '"1us", 0.5]', "level 2: a row of its table is out of range"),
        ('"300ns+1ns/B"', '"300ns+-1ns/B"', "level 1, its port: '300ns+-1ns/B' is below 0"),
        ("placement = ", f"groups = [[[0, {10**30}]]] #", "ranks are too many"),
        ("placement = ", f"groups = {'[' * 9999} #", "in each other too deeply"),
        ('costs = "200ns,2"', 'costs = "200ns,2,3us"', "level 1: number of terms: 3"),
        ('name = "box"', "", "some levels have names, and others have none"),
        ("[[levels]]", "[[levels", "it is no TOML"),
        ("[[levels]]", "[[levels]]\n" * 40 + "[[levels]]", "levels: 123 of them"),
        (
            'table = [[8, "1us", 3],',
            'table = [[2048, "1us", 3],',
            "a measured machine: sizes [2048",
        ),
    ],
)
def test_files_that_are_refused(tmp_path: Path, old: str, new: str, seen: str) -> None:
    path = tmp_path / "levels.toml"
    path.write_text(FILE.replace(old, new))
    with pytest.raises(InvalidArgument) as caught:
        load(path)
    assert caught.value.asked == f"the file of levels {path}"
    assert seen in caught.value.seen
    assert caught.value.remedy


def test_what_no_machine_of_two_levels_has() -> None:
    machine: Any = Machine.levels([INSIDE, ACROSS], PLACED)
    asks: list[Callable[[], Any]] = [
        lambda: machine.at(0, 8),
        lambda: machine.at(3, 8),
        lambda: machine.port(1, -8),
        lambda: machine.crossing(3),
        lambda: machine.between(0, 6, 8),
        lambda: machine.between(2, 2, 8),
        lambda: machine.placed("2x3"),
    ]
    for ask in asks:
        with pytest.raises(InvalidArgument):
            ask()


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="No such file or directory; name another file"):
        load(tmp_path / "none.toml")


@pytest.mark.parametrize("preset", LEVEL_PRESETS.values(), ids=lambda p: p.name)
def test_presets_say_where_their_numbers_are_from(preset: LevelPreset) -> None:
    shape = "x".join("4" * (len(preset.groups) + 1))
    machine = preset.machine(shape)
    assert [level.name for level in machine.by_level] == list(preset.notes)
    assert all("published" in note or "estimate" in note for note in preset.notes.values())
    assert machine.oddities(8) == machine.oddities(1 << 20) == ()
    bibliography = Path("docs/bibliography.bib").read_text()
    for note in preset.notes.values():
        for key in [word for word in note.split() if word.startswith("([")]:
            assert f"{{{key[2:].rstrip('],')}," in bibliography
