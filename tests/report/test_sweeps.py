"""Sweeps: rows, CSV, and files that are kept while they grow."""

import csv
import errno
import os
from pathlib import Path

import pytest

from collwise.errors import InvalidArgument
from collwise.report.sweep_files import SweepKeeper
from collwise.report.sweep_tables import sweep_csv, sweep_lines, sweep_row
from collwise.tuning.outcomes import Outcome
from collwise.tuning.race_records import read_sweep
from tests.report.html_page import Page
from tests.tuning.examples import outcome
from tests.tuning.test_race_records import sweep


def test_a_row_and_its_line_in_the_csv_say_the_same() -> None:
    made = sweep(outcome(4096, blocking_gain=2.0), outcome(8, repetitions=2))
    rows = list(csv.DictReader(sweep_csv(made.races, "blocking").splitlines()))
    assert [*rows[0]] == [
        "collective", "ranks", "nbytes", "repetitions", "library_s", "ours_s", "ratio", "low",
        "high", "algorithm",
    ]  # fmt: skip
    first = sweep_row(made.races[0], "blocking")
    assert first["size"] == "4 KiB"
    assert first["ours/library"] == f"{float(rows[0]['ratio']):.2f}"
    assert first["95 %"] == f"{float(rows[0]['low']):.2f} … {float(rows[0]['high']):.2f}"
    assert float(rows[0]["ratio"]) == pytest.approx(0.5, rel=0.05)
    assert float(rows[0]["ours_s"]) / float(rows[0]["library_s"]) == pytest.approx(
        float(rows[0]["ratio"])
    )
    assert rows[1]["high"] == "inf"  # of two repetitions nothing is known
    assert sweep_row(made.races[1], "blocking")["95 %"].endswith("∞")


def test_what_is_uncertain_is_named() -> None:
    lines = sweep_lines(
        sweep(*(outcome(n, noise=0.9) for n in (8, 16, 32, 64, 128, 4096))), "blocking"
    )
    assert lines[0].startswith("verdict  noisy: 6 of 6 races")
    assert lines[1].startswith("wide     broadcast of 8 B on 5 ranks, root 1 ± ")
    assert lines[1].endswith(" and 1 more: give more --budget and --repetitions")


def test_files_grow_with_the_sweep(tmp_path: Path) -> None:
    names = {"record": "r.json", "csv": "s.csv", "picture": "s.png", "report": "s.html"}
    paths = {kind: tmp_path / name for kind, name in names.items()}
    shown: list[tuple[Outcome, str]] = []
    keeper = SweepKeeper(
        sweep(), "blocking", paths, lambda made, row, library: shown.append((made, row["size"]))
    )
    for number, nbytes in enumerate((8, 4096), 1):
        made = outcome(nbytes)
        assert keeper.wants(made.task)
        keeper.add(made, "MPI")
        assert not keeper.wants(made.task)
        assert read_sweep(tmp_path / "r.json").cells == keeper.sweep.cells
        assert len((tmp_path / "s.csv").read_text().splitlines()) == 1 + number
    assert [size for _, size in shown] == ["8 B", "4 KiB"]
    documents = [save().document for save in keeper.savings]
    assert [name for found in documents for name in found] == [
        "record_path", "csv_path", "picture_path", "report_path"
    ]  # fmt: skip
    assert (tmp_path / "s.png").stat().st_size > 1000
    page = Page((tmp_path / "s.html").read_text())
    assert "svg" in {tag for tag, _ in page.tags}


def test_a_pipe_gets_the_sweep_once(tmp_path: Path) -> None:
    """It cannot be replaced as a file is, so nothing is written before the end."""
    os.mkfifo(path := tmp_path / "pipe")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    keeper = SweepKeeper(sweep(), "blocking", {"csv": path}, None)
    for nbytes in (8, 4096):
        keeper.add(outcome(nbytes), "MPI")
    assert os.read(reader, 1 << 16) == b""
    (save,) = keeper.savings
    save()
    assert len(os.read(reader, 1 << 16).splitlines()) == 3
    os.close(reader)


def test_a_full_disk_ends_the_sweep_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.json"
    keeper = SweepKeeper(sweep(), "blocking", {"record": path}, None)
    keeper.add(outcome(8), "MPI")

    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("collwise.system.files.replace_file", full)
    keeper.add(outcome(16), "MPI")
    assert not keeper.wants(outcome(32).task)
    with pytest.raises(InvalidArgument, match=r"write the record .*: No space left on device"):
        keeper.savings[0]()
    assert len(keeper.sweep.cells) == 2
    assert len(read_sweep(path).cells) == 1
    monkeypatch.undo()
    keeper.savings[0]()
    assert read_sweep(path) == keeper.sweep


def test_only_races_with_the_form_are_shown(tmp_path: Path) -> None:
    """A record of blocking calls goes on as one of nonblocking calls: they are raced again."""
    paths = {kind: tmp_path / f"it.{kind}" for kind in ("csv", "report")}
    keeper = SweepKeeper(sweep(outcome(8), outcome(64)), "nonblocking", paths, None)
    assert keeper.wants(outcome(8).task)
    keeper.add(made := outcome(8, nonblocking_gain=2.0), "MPI")
    assert not keeper.wants(made.task)
    for save in keeper.savings:
        save()
    (row,) = csv.DictReader(paths["csv"].read_text().splitlines())
    assert float(row["ours_s"]) == made.decisions[1].measured.middle
    assert "Sweep of nonblocking calls" in paths["report"].read_text()


def test_nothing_to_write() -> None:
    keeper = SweepKeeper(sweep(), "blocking", {}, None)
    keeper.add(outcome(8), "MPI")
    assert keeper.savings == []
