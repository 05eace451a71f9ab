"""Tables, summaries and JSON documents of sessions, races and plans."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from collwise.cli import output
from collwise.measure.race import BLOCKING, CALLS, LIBRARY, LIBRARY_PERSISTENT
from collwise.model.machine import Machine
from collwise.model.topology import Mesh
from collwise.planner.choose import plan
from collwise.planner.plans import shares
from collwise.profiles.records import CombineTime, ReadTime
from collwise.report.plan_document import plan_document
from collwise.report.tables import Table
from collwise.report.tuning_tables import (
    UNRACED,
    combining_table,
    hockney_table,
    levels_table,
    measured_table,
    race_document,
    race_summary,
    race_table,
    reading_table,
    tuning_document,
    tuning_summary,
    tuning_table,
)
from collwise.system import formatting
from tests.planner.machines import HOCKNEY
from tests.profiles.example import point, profile
from tests.tuning.examples import RANKS, WITH_NODES, alone, outcome, session

COMPARED = ("call", "measured", "library", "speed-up", "used")


def columns(table: Table) -> dict[str, list[str]]:
    """A table by its titles; every row has a cell for each of them, and there is more than is
    optional."""
    assert {tuple(row) for row in table.rows} == {tuple(table.columns)}
    assert all(isinstance(cell, str) for row in table.rows for cell in row.values())
    assert set(table.optional) < set(table.columns)
    return {title: [row[title] for row in table.rows] for title in table.columns}


def as_json(value: Any) -> Any:
    """The document after a journey; raises ValueError for NaN and infinities."""
    return json.loads(json.dumps(value, allow_nan=False))


def test_two_rows_for_every_size() -> None:
    """One for each form of the call: what was decided, and against which time of the library."""
    found = session(outcome(512, 1.5, 0.8), outcome(65536, 0.7, 1.2))
    table = columns(tuning_table(found))
    assert table["size"] == ["512 B", "512 B", "64 KiB", "64 KiB"]
    assert table["call"] == ["Bcast", "Bcast_init"] * 2
    assert table["used"] == ["library", "collwise", "collwise", "library"]
    rights = [(made, decision) for made in found.outcomes for decision in made.decisions]
    for i, (made, decision) in enumerate(rights):
        assert table["t0"][i] == formatting.time(made.t0_s)
        assert float(table["λ"][i]) == pytest.approx(made.lam, rel=0.01)
        assert f"broadcast/{table['algorithm'][i]}" == decision.ours
        predicted = made.plan.candidate(decision.ours).predicted_s
        assert table["predicted"][i] == formatting.time(predicted)
        assert table["measured"][i] == formatting.time(decision.measured.middle)
        assert table["library"][i] == formatting.time(decision.race.medians[LIBRARY].middle)
        gain = decision.speedup
        assert table["speed-up"][i] == f"{gain.middle:.2f}"
        assert table["speed-up, 95 %"][i] == f"{gain.low:.2f} … {gain.high:.2f}"
    behind, ahead = "the library's own is faster", "clearly ahead"
    assert table["verdict"] == [behind, ahead, ahead, behind]


def test_levels_and_where_time_is_spent() -> None:
    made = outcome(512, 1.5, 0.8, measured=WITH_NODES)
    found = session(made, alone(8), measured=WITH_NODES)
    table = columns(tuning_table(found))
    told = table["time spent"]
    assert told[0] == told[1] == shares(made.spent)
    assert "between nodes" in told[0]
    assert told[2:] == ["-", "-"]
    assert made.t0_s == 2e-6  # of a rank, whose node's port is busy for longer
    assert made.lam == pytest.approx(8 * 6.12 / 2)
    spent_s = as_json(race_document(made))["spent_s"]
    assert sum(spent_s.values()) == pytest.approx(made.plan.candidate(made.ours).predicted_s)
    levels = columns(levels_table(WITH_NODES))
    assert levels["messages"] == ["inside a node"] * 4 + ["between nodes"] * 4
    assert levels["λ"] == ["2"] * 4 + ["8"] * 4
    assert levels["port"] == ["-"] * 4 + ["not noticed", "-", "42.0 µs", "-"]
    assert levels["its rank"][6] == "2.00 µs"
    assert not levels_table(profile()).rows
    assert "time spent" not in tuning_table(session(outcome(512))).columns


def test_each_form_against_its_own() -> None:
    """Blocking calls against the blocking call, persistent ones against the faster form."""
    made = outcome(4096, gain=1.02, blocking_gain=1.5)
    quick = {LIBRARY_PERSISTENT: tuple(t / 2 for t in made.race.samples[LIBRARY])}
    everything = replace(made.everything, samples={**made.everything.samples, **quick})
    made = replace(made, everything=everything)
    table = columns(tuning_table(session(made)))
    blocking, persistent = (
        formatting.time(made.race.medians[label].middle) for label in (LIBRARY, LIBRARY_PERSISTENT)
    )
    assert table["library"] == [blocking, persistent]
    assert table["used"] == ["collwise", "library"]
    found = as_json(race_document(made))
    forms = found["forms"]
    assert forms["blocking"]["library"] == LIBRARY
    assert forms["persistent"]["library"] == found["library"] == LIBRARY_PERSISTENT
    assert forms["blocking"]["library_s"] == made.race.medians[LIBRARY].middle
    assert found["library_s"] == made.race.medians[LIBRARY_PERSISTENT].middle
    told = race_summary(made)
    assert "blocking calls: 1." in told[0]
    assert f"compared with {LIBRARY})" in told[0]
    assert told[1].startswith("         persistent calls: the library's own is faster (")
    assert f"compared with {LIBRARY_PERSISTENT})" in told[1]


def test_nothing_to_race() -> None:
    table = columns(tuning_table(session(alone(8), outcome(512))))
    shown = ["collective", "size", "t0", "λ", "call", "library", "used", "verdict", "lower bound"]
    for row, call in enumerate(("Bcast", "Bcast_init")):
        assert [title for title, cells in table.items() if cells[row] != "-"] == shown
        assert (table["size"][row], table["call"][row]) == ("8 B", call)
        assert (table["used"][row], table["verdict"][row]) == ("library", "nothing to race")
    assert "nothing to race" not in table["verdict"][2:]
    told = race_summary(alone(8))
    assert told[0] == f"verdict  blocking calls: {UNRACED}"


def test_the_table_fits_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each call on a line of its own: who serves it, both times, the ratio."""
    monkeypatch.setenv("COLLWISE_TERMINAL", "out 80")
    found = session(outcome(512), outcome(1 << 20, sources=(0, 2)), outcome(4096, repetitions=2))
    shown = tuning_table(found, "5 ranks, a library")
    output.table(shown)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 80
    table = columns(shown)
    for i in range(len(shown.rows)):
        told = [table[name][i] for name in COMPARED]
        told.append(table["algorithm"][i].partition("(")[0])
        assert any(all(one in line.split() or one in line for one in told) for line in lines)


def test_what_sources_give() -> None:
    """How many there are, and the bytes of each; elsewhere, the bytes of the message."""
    found = session(outcome(512, 1.5, sources=(0, 2)), outcome(0, sources=(0, 2)), outcome(64))
    assert columns(tuning_table(found))["size"] == [
        *("2 × 512 B", "2 × 512 B", "0 B", "0 B", "64 B", "64 B")
    ]
    assert "allgatherv of 2 × 512 B " in tuning_summary(found)[2]
    race, nothing, broadcast = (as_json(race_document(o)) for o in found.outcomes)
    assert race["sources"] == [{"rank": rank, "nbytes": 512} for rank in (0, 2)]
    assert (race["nbytes"], race["shape"]) == (1024, [1, 5])
    assert nothing["sources"] == []
    assert "sources" not in broadcast


def test_an_interval_without_an_end() -> None:
    """Two repetitions say nothing of how far the ratio could be off."""
    few = outcome(repetitions=2)
    for table in (tuning_table(session(few)), race_table(few)):
        cells = [cell for row in table.rows for cell in row.values()]
        assert any("0.00 … ∞" in cell for cell in cells)
        assert not any("inf" in cell for cell in cells)
    assert race_document(few)["speedup_interval"] == [0.0, None]
    as_json(race_document(few))


def test_a_summary() -> None:
    """Both forms are counted apart."""
    found = session(outcome(512, 1.5), outcome(4096, 0.7, 1.4), outcome(65536, 2.0), alone(8))
    lines = tuning_summary(found)
    assert lines[0] == f"verdict  {found.profile.verdict}"
    persistent = [found.outcomes[i].decisions[1].speedup.middle for i in (0, 2)]
    blocking = found.outcomes[1].decisions[0].speedup.middle
    assert lines[1:3] == [
        "races    blocking calls: the library's default is clearly beaten in 1 of 4:"
        f" broadcast of 4 KiB {blocking:.2f}×",
        "         persistent calls: the library's default is clearly beaten in 2 of 4:"
        f" broadcast of 512 B {persistent[0]:.2f}×, broadcast of 64 KiB {persistent[1]:.2f}×",
    ]
    assert lines[3] == "checked  every byte on every rank, before and after every race"
    assert len(lines) == 4
    lost = tuning_summary(session(outcome(512, 0.7)))
    assert all("clearly beaten in 0 of 1; the library's own stays" in line for line in lost[1:3])


def test_advice_is_passed_on() -> None:
    found = session(outcome())
    advised = type(found)(profile(advice=("close the browser", "use 4 ranks")), found.outcomes)
    assert tuning_summary(advised)[4:] == ["advice   close the browser", "advice   use 4 ranks"]


def test_measured_sizes() -> None:
    bare = point(
        100, "blocking", lam_interval=None, lam_experiments=(None, 1.25), segment=0, verdict="odd"
    )
    table = columns(
        measured_table(profile([point(8, "nonblocking", lam_interval=(1.4, 1.6)), bare]))
    )
    assert table["size"] == ["8 B", "100 B"]
    assert table["sends"] == ["nonblocking", "blocking"]
    assert table["t0"] == [
        formatting.time(point(8, "nonblocking").t0_s),
        formatting.time(bare.t0_s),
    ]
    assert table["λ"] == ["1.5", "1.5"]
    assert table["λ, 95 %"] == ["1.4 … 1.6", "-"]
    assert table["experiments 1, 2"] == ["1.47, 1.53", "-, 1.25"]
    assert table["protocol"] == ["1", "1"]
    assert table["verdict"] == ["stable", "odd"]


def test_times_as_lines_and_times_of_combining() -> None:
    """The line through the points of every protocol; per byte, in nanoseconds."""
    time = CombineTime(
        op="max", dtype="int32", nbytes=4096, median_s=2e-6, interval_s=(1e-6, 3e-6), repetitions=9
    )
    measured = profile(combining=(time,))
    lines = measured.machine_for("nonblocking").lines()
    table = columns(hockney_table(measured))
    assert table["sizes"] == [
        f"{formatting.size(line.first)} … {formatting.size(line.last)}" for line in lines
    ]
    assert table["α"] == [formatting.time(line.alpha_s) for line in lines]
    for beta, rate, line in zip(table["β, per byte"], table["rate"], lines, strict=True):
        assert float(beta.removesuffix(" ns")) == pytest.approx(line.beta_s * 1e9, rel=1e-3)
        assert rate == "-" if line.beta_s <= 0 else rate.endswith(" MB/s")
    assert list(columns(combining_table(measured)).values()) == [
        ["max"], ["int32"], ["4 KiB"], ["2.00 µs"], ["1.00 … 3.00"], ["0.488 ns"]
    ]  # fmt: skip


def test_reads_of_shared_memory() -> None:
    """Two ranks cannot tell what many readers take."""
    alone = ReadTime(nbytes=8, read_s=5e-8, repetitions=3)
    many = ReadTime(nbytes=64, read_s=6e-8, repetitions=3, readers=7, by_one_s=1e-7, by_all_s=4e-7)
    told = [[*columns(reading_table(profile(reading=of)))] for of in ((alone,), (alone, many))]
    assert told[0] == ["size", "a read"]
    table = columns(reading_table(profile(reading=(alone, many))))
    assert table["a message to 1"] == ["-", "100 ns"]
    assert table["a message to 7"] == ["-", "400 ns"]


def test_every_competitor_of_a_race() -> None:
    """The fastest first, blocking calls too, all against the library's plain collective."""
    made = outcome(4096, gain=1.5, blocking_gain=1.2, nonblocking_gain=3.0)
    both = {
        label.removeprefix("broadcast/"): (race, label)
        for race in made.races.values()
        for label in race.samples
    }
    table = columns(race_table(made))
    assert sorted(table["competitor"]) == sorted(both)
    ours = made.ours.removeprefix("broadcast/")
    assert {LIBRARY, LIBRARY_PERSISTENT, ours, ours + BLOCKING} <= {*table["competitor"]}
    medians = [both[name][0].medians[both[name][1]] for name in table["competitor"]]
    times = [median.middle for median in medians]
    assert times == sorted(times)
    assert table["median"] == [formatting.time(time) for time in times]
    assert table["median, 95 %"] == [
        formatting.time_between(m.low, m.high, m.middle) for m in medians
    ]
    gains = dict(zip(table["competitor"], table["speed-up over library"], strict=True))
    assert gains[LIBRARY] == "1.00"
    assert gains[LIBRARY_PERSISTENT].startswith("0.9")
    assert gains[ours].startswith("1.5")
    assert gains[ours + BLOCKING].startswith("1.2")
    assert float(gains[ours + " (nonblocking)"]) == pytest.approx(1.5, abs=0.02), "3 by half"
    serves = dict(zip(table["competitor"], table["used for"], strict=True))
    assert serves.pop(ours) == "persistent"
    assert serves.pop(ours + BLOCKING) == "blocking"
    assert serves.pop(ours + " (nonblocking)") == "nonblocking"
    assert {*serves.values()} == {"-"}
    intervals = dict(zip(table["competitor"], table["speed-up, 95 %"], strict=True))
    assert intervals[LIBRARY] == "1.00 … 1.00"
    for name, predicted in zip(table["competitor"], table["predicted"], strict=True):
        expected = made.race.predicted_s.get(both[name][1])
        assert predicted == ("-" if expected is None else formatting.time(expected))


def test_what_a_race_rests_on() -> None:
    made = outcome(repetitions=20, dropped=3)
    *_, samples, checked = race_summary(made)
    assert samples.startswith("samples  20 repetitions of each, ")
    assert samples.endswith("; 3 dropped because ranks started more than 0 s apart")
    assert "every byte" in checked
    assert "  1 repetition of each" in race_summary(outcome(repetitions=1))[2]


@pytest.mark.parametrize("gain", [1.5, 1.0, 0.6])
def test_a_race_as_json(gain: float) -> None:
    """For each form; and what stands beside the forms is of one and the same race."""
    made = outcome(4096, gain=gain, blocking_gain=1.2, nonblocking_gain=1.2, dropped=2)
    found = as_json(race_document(made))
    assert (found["collective"], found["ranks"], found["nbytes"]) == ("broadcast", RANKS, 4096)
    assert (found["root"], found["dropped"]) == (1, 2)
    assert (found["t0_s"], found["lam"]) == (made.t0_s, made.lam)
    assert found["lower_bound_s"] == made.plan.lower_bound_s
    assert list(found["forms"]) == [decision.form for decision in made.decisions]
    assert found["forms"]["persistent"].items() <= found.items()
    wins = {win.form: win for win in session(made).profile.race_results}
    for decision in made.decisions:
        told, race = found["forms"][decision.form], decision.race
        label = told["algorithm"] + CALLS[decision.form].ending
        assert label == race.best
        assert told["ours_s"] == race.medians[label].middle
        assert told["library_s"] == race.medians[told["library"]].middle
        assert told["speedup"] == pytest.approx(told["library_s"] / told["ours_s"])
        assert told["ratio"] == pytest.approx(told["ours_s"] / told["library_s"])
        low, high = told["speedup_interval"]
        assert low <= told["speedup"] <= high
        ahead = (gain if decision.form == "persistent" else 1.2) > 1
        assert told["winner"] == (told["algorithm"] if ahead else told["library"])
        assert told["verdict"] == race.verdict
        assert told["decision"] == wins[decision.form].decision
        assert told["predicted_s"] == made.plan.candidate(told["algorithm"]).predicted_s
        assert told["predicted_s"] >= found["lower_bound_s"] > 0
    calls = [told["call"] for told in found["forms"].values()]
    assert calls == ["Bcast", "Ibcast", "Bcast_init"]


def test_competitors_as_json() -> None:
    """Each once, with all its samples."""
    made = outcome(4096, repetitions=7)
    found = as_json(race_document(made))["competitors"]
    samples = {one["label"]: tuple(one["samples_s"]) for one in found}
    assert len(samples) == len(found)
    assert samples == made.everything.samples
    for one in found:
        low, high = one["interval_s"]
        assert low <= one["median_s"] <= high
        assert one["predicted_s"] == made.race.predicted_s.get(one["label"])


def test_a_race_of_the_library_alone_as_json() -> None:
    found = as_json(race_document(alone(8)))
    assert found["algorithm"] == found["winner"] == LIBRARY
    assert found["predicted_s"] is None
    assert found["speedup"] == found["ratio"] == 1
    assert all(form["verdict"] == UNRACED for form in found["forms"].values())
    assert [one["label"] for one in found["competitors"]] == [LIBRARY, LIBRARY_PERSISTENT]


def test_a_session_as_json() -> None:
    found = session(outcome(512), alone(8), outcome(0))
    made = as_json(tuning_document(found))
    assert made["races"] == [as_json(race_document(o)) for o in found.outcomes]
    assert made["profile"] == json.loads(found.profile.to_json())
    assert len(made["profile"]["wins"]) == len(found.profile.race_results) > 0


def test_a_plan_as_json() -> None:
    made = plan("broadcast", ranks=2, nbytes=3000, machine=HOCKNEY, root=1)
    found = as_json(plan_document(made, "a test"))
    assert found["machine"] == HOCKNEY.describe()
    assert found["machine_from"] == "a test"
    assert (found["collective"], found["ranks"], found["nbytes"]) == ("broadcast", 2, 3000)
    assert (found["root"], found["algorithm"]) == (1, made.algorithm)
    assert found["settings"] == {name: str(value) for name, value in made.settings.items()}
    assert found["predicted_s"] == made.predicted_s
    assert (found["lower_bound_s"], found["lower_bound"]) == (
        made.lower_bound_s,
        made.bound.argument,
    )
    assert found["unsegmented_bound_s"] == made.unsegmented_bound.time_s
    assert [tuple(one.values()) for one in found["candidates"]] == [
        (c.label, c.predicted_s, c.estimate, c.verdict) for c in made.candidates
    ]
    assert found["excluded"] == made.excluded
    assert found["excluded"]


def test_a_plan_with_sources_as_json() -> None:
    machine = Machine.wormhole(send_s="1e-6", receive_s="1e-6", hop_s="1e-8", beta_s="1e-9")
    made = plan(
        "allgatherv", ranks=6, nbytes=[5, 7], machine=machine, sources=[4, 1], topology=Mesh(2, 3)
    )
    found = as_json(plan_document(made, ""))
    assert found["sources"] == [{"rank": 1, "nbytes": 7}, {"rank": 4, "nbytes": 5}]
    assert (found["shape"], found["topology"]) == ([2, 3], "mesh of 2 × 3")
    assert found["remarks"] == list(made.remarks) != []
