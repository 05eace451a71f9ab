"""GOAL programs by other hands: what is understood, and what is refused with its line."""

from pathlib import Path

import pytest

from collwise.errors import InvalidArgument
from collwise.formats.goal_reader import Goal, read_goal
from collwise.model.machine import Machine

POSTAL = Machine.postal(t0_s=1, lam=3)


def read(folder: Path, *lines: str) -> Goal:
    path = folder / "it.goal"
    path.write_text("\n".join(lines))
    return read_goal(path)


def test_comments_blanks_and_lines_that_share_a_line(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "num_ranks 3 // three",
        "/* rank 2 {",
        "   is below */",
        "rank 2{ recv 8 from 0 tag 4; x : send 16b to 1 cpu 0 nic 0 }",
        "rank 0 { send 8b to 2 tag 4 }",
        "rank 1 {",
        "  recv   16b  from 2",
        "}",
    )
    assert (found.ranks, sorted(found.sizes.tolist()), max(found.sizes, default=0)) == (
        3,
        [8, 16],
        16,
    )
    assert found.time(POSTAL).finish_s == (1, 3, 3)


def test_ranks_that_do_nothing_may_be_left_out(tmp_path: Path) -> None:
    found = read(tmp_path, "num_ranks 5")
    assert (found.ranks, len(found.sizes), max(found.sizes, default=0)) == (5, 0, 0)
    assert found.time(POSTAL).completion == 0


def test_lines_are_the_order_of_sends(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "num_ranks 2",
        "rank 0 {", "early: send 16b to 1", "late: send 8b to 1 tag 1", "late irequires early", "}",
        "rank 1 {", "recv 16b from 0", "recv 8b from 0 tag 1", "}",
    )  # fmt: skip
    sizes = [transfer.nbytes for transfer in found.time(POSTAL).transfers]
    assert sizes == [16, 8]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("", "line 1: ''; begin with num_ranks"),
        ("ranks 2", "line 1: 'ranks 2'; begin with num_ranks"),
        ("num_ranks 0", "line 1: 'num_ranks 0'; begin with num_ranks and their number, 1 to "),
        ("num_ranks 2||send 8b to 1", "line 3: 'send 8b to 1'; write rank NUMBER"),
        ("num_ranks 2|rank 2 {|}", "line 2: rank 2 is none of 2"),
        ("num_ranks 2|rank 0 { }|rank 0 { }", "line 3: rank 0 is there twice"),
        ("num_ranks 2|rank 0 {|calc 5", "line 2: rank 0 has no end; close it"),
    ],
)
def test_ranks_that_are_refused(tmp_path: Path, lines: str, words: str) -> None:
    refused(tmp_path, lines, words)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("sent 8b to 1", "line 3: 'sent 8b to 1'; write send … to"),
        ("send 8b from 1", "line 3: 'send 8b from 1'; write send … to"),
        ("recv 8b to 1", "line 3: 'recv 8b to 1'; write send … to"),
        ("calc 8b to 1", "line 3: 'calc 8b to 1'; write send … to"),
        ("send 8", "line 3: 'send 8'; write send … to"),
        ("rank 1 {", "line 3: 'rank 1 {'; write send … to"),
        ("send 8b to 2", "line 3: there is no rank 2"),
        ("send 8b to 0", "line 3: a message from rank 0 to itself"),
        ("send 0b to 1", "line 3: an empty message"),
        ("calc 10000000000000000", "line 3: 10000000000000000 is too much"),
        (
            "calc 5 cpu 1",
            "line 3: 'calc 5 cpu 1'; write send … to, recv … from, calc, all on cpu 0",
        ),
        ("a: calc 5|a: calc 6", "line 4: the label a is there twice"),
        ("a: calc 5|a requires b", "line 4: there is no label b above"),
        ("a: calc 5|b: calc 6|b requires a|a requires b", "line 6: a requires b, which does not"),
        ("a: calc 5|a requires a", "line 4: a requires a, which does not stand above it"),
        (
            "a: send 8b to 1|b: recv 8b from 1|b requires a",
            "line 5: a recv that requires a send, and all receives are posted",
        ),
        ("a: calc 5|b: recv 8b from 1|b irequires a", "line 5: a recv that irequires a calc"),
        ("a: recv 8b from 1|b: send 8b to 1|b irequires a", "line 5: a send that irequires a recv"),
        ("send 8b to 1 tag 3", "line 3: rank 1 receives no such message with tag 3"),
        ("recv 8b from 1", "line 3: rank 1 sends no such message with tag 0"),
        ("send 8b to 1|}|rank 1 {|recv 9b from 0", "line 3: 8 bytes are sent, line 6 receives 9"),
    ],
)
def test_lines_that_are_refused(tmp_path: Path, lines: str, words: str) -> None:
    refused(tmp_path, f"num_ranks 2|rank 0 {{|{lines}|}}", words)


def refused(folder: Path, lines: str, words: str) -> None:
    with pytest.raises(InvalidArgument, match=r"read .*it\.goal: line ") as refusal:
        read(folder, *lines.split("|"))
    assert words in str(refusal.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="No such file or directory; name a GOAL file"):
        read_goal(tmp_path / "none")


def test_a_circle_of_ranks(tmp_path: Path) -> None:
    """No rank waits for itself, yet nobody begins."""
    found = read(
        tmp_path,
        "num_ranks 2",
        "rank 0 {", "a: recv 8b from 1", "b: send 8b to 1", "b requires a", "}",
        "rank 1 {", "a: recv 8b from 0", "b: send 8b to 0", "b requires a", "}",
    )  # fmt: skip
    with pytest.raises(InvalidArgument, match="ranks wait for each other in a circle"):
        found.time(POSTAL)


def test_nothing_but_times_is_known(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="it names no data; only time it"):
        read(tmp_path, "num_ranks 2").schedule.rank(0)
