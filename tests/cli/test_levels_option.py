"""--levels: machines of nodes, racks and sites on the command line."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.running import document
from tests.tuning.examples import WITH_NODES

LINE = "2x3: 1us,2,2us; 9us,4"


def test_a_line_a_file_a_preset(collwise: Run, tmp_path: Path) -> None:
    people = collwise("plan", "-n", "6", "--bytes", "64", "--levels", LINE).printed()
    assert "machine      2 nodes × 3 ranks; inside a node t0 = 1 µs" in people
    assert "between nodes\nlower bound" in people
    path = tmp_path / "machine.toml"
    path.write_text(
        'placement = "2x3"\n[[levels]]\ncosts = "1us,2"\nport = "2us"\n'
        '[[levels]]\ncosts = "9us,4"\n'
    )
    filed = document(collwise, "simulate", "-n", "6", "--bytes", "64", "--levels", path)
    names = {one["algorithm"] for one in filed["simulations"]}
    assert names >= {"broadcast/multilevel", "broadcast/binomial"}
    asked = "plan allgatherv -n 8 --sources 1, --bytes 64 --levels ethernet:2x2x2"
    spent_s = document(collwise, *asked.split())["spent_s"]
    assert set(spent_s) <= {"inside a node", "between nodes", "between racks"}


def test_an_outer_level_that_is_faster_is_said_by_all(collwise: Run) -> None:
    odd = "messages between nodes are faster than those inside a node"
    for command in ("plan", "simulate"):
        asked = (command, "-n", "6", "--bytes", "64", "--levels", "2x3: 9us,4; 1us,2")
        assert collwise(*asked).out.count(f"note         {odd}\n") == 1
        assert document(collwise, *asked)["machine_notes"] == [odd]


@pytest.mark.parametrize(
    ("ranks", "levels", "more", "words"),
    [
        ("7", LINE, (), "7 ranks: --levels places 6; give as many to both"),
        ("6", "machine.TOML", (), "or name a preset or a file that ends in .toml"),
        ("6", "ethernet: 6", (), "ethernet has racks and nodes, and the placement has 1 level "),
        ("6", "sites", (), "it does not say where the ranks are; write one of emulated:4x16"),
        ("8", "foo:2x4", (), "no such preset; write one of emulated:4x16, ethernet:2x4x16, clus"),
        ("6", LINE, ("--t0", "1us", "--lam", "2"), "describe one machine only"),
        ("6", LINE, ("--topology", "mesh:2x3"), "knows no links"),
    ],
)
def test_refused(collwise: Run, ranks: str, levels: str, more: tuple[str, ...], words: str) -> None:
    collwise("plan", "-n", ranks, "--bytes", "64", "--levels", levels, *more).refused(words)


def test_a_measured_machine_with_levels(collwise: Run, folder: Path) -> None:
    """Its nodes are filled as they were, or ranks are where --placement says."""
    WITH_NODES.save(folder / "profile.json")
    usual = collwise("plan", "-n", "5", "--bytes", "512").printed()
    assert "machine      3 nodes × 1 to 2 ranks; inside a node t0 = " in usual
    placed = collwise("plan", "-n", "6", "--bytes", "512", "--placement", "2x3, round robin")
    assert "machine      2 nodes × 3 ranks; " in placed.out
    flat = collwise("simulate", "-n", "4", "--bytes", "512", "--topology", "complete:4")
    assert "measured from 8 to 65536 bytes" in flat.out + flat.err
    for arguments, seen in (
        (
            ["-n", "8", "--placement", "2x2x2"],
            "a placement of 2 × 2 × 2 ranks: 3 levels; the profile has 2",
        ),
        (["-n", "5", "--placement", "2x2"], "the placement has 4"),
        (["-n", "4", "--placement", "2x2", "--t0", "1us", "--lam", "2"], "measured machines"),
        (["-n", "4", "--placement", "2y2"], "'2y2' is no product of group sizes"),
        (["-n", "4", "--placement", "4"], "a placement of 4 ranks: 1 level; the profile has 2"),
    ):
        refused = collwise("plan", "--bytes", "512", *arguments)
        assert refused.code == 2
        assert seen in refused.err.replace("\n", " ")
