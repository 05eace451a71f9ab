"""Values that make no sense are refused before anything is started."""

import os
from pathlib import Path
from random import Random

import click
import pytest

from collwise.cli.bench_command import _parse_order
from collwise.cli.parameter_types import OUTPUT, SIZES
from collwise.errors import InvalidArgument
from tests.cli.conftest import Run
from tests.cli.running import POSTAL

ON_RANKS = ("tune", "measure", "bench", "inspect", "scan")
ASSUMING = ("plan -n 4 --t0=1 --lam=4", "simulate -n 4 --t0=1 --lam=4")


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **__: object) -> int:
        raise AssertionError("ranks were started")

    monkeypatch.setattr("collwise.cli.ranks_option.start", start)


BUDGETS = ("0", "-1", "nan", "inf", "x", "", "1e300")
REFUSED: list[tuple[str, ...]] = [
    *((f"{line} --bytes=1.5", "'--bytes'", "give ") for line in (*ASSUMING, *ON_RANKS)),
    ("measure --bytes=8,x", "'--bytes'", "'x' is no size"),
    ("measure --bytes=,", "'--bytes'", "there is no size in ','"),
    (f"{ASSUMING[0]} --bytes=10^21", "is no size", "powers are not worked out"),
    (f"{ASSUMING[0]} --bytes=1048577G", "'--bytes'", "too large; give at most 1048576G"),
    *((f"tune --budget={budget}", "'--budget'", "give seconds > 0") for budget in BUDGETS),
    *((f"{name} --budget=0", "'--budget'", "give seconds > 0") for name in ON_RANKS[1:]),
    ("lab --timeout=1e300 true", "'--timeout'", "give seconds > 0"),
    *((f"plan -n {n} --bytes 8", "'-n' / '--ranks'", "Error: ") for n in ("0", "-1", "x", "1.5")),
    *((f"{name} -n 0 --bytes 8", "'-n' / '--ranks'") for name in ("simulate", *ON_RANKS)),
    (f"plan -n {2**31} --bytes 8", "1<=x<=2147483647"),
    *((f"{name} -n 10000", "10000 ranks on this machine (-n 10000): ") for name in ON_RANKS),
    ("lab --ranks-per-host 0 true", "'0' is no number of ranks"),
    ("plan -n ٣ --bytes 8", "is no integer in plain digits"),
    ("plan -n 1_0 --bytes 8", "is no integer in plain digits"),
    ("plan -n 8 --bytes 8 --root ٣", "is no integer in plain digits"),
    ("measure -n ٣", "is no integer in plain digits"),
    ("measure --seed 1_0", "is no integer in plain digits"),
    ("run -n ٣ x.py", "is no integer in plain digits"),
    ("lab --hosts ٣ true", "is no integer in plain digits"),
    ("explore --port ٣", "is no integer in plain digits"),
    (f"{ASSUMING[0]} --bytes=8 --root=4", "broadcast from root 4: it has 4 ranks; give "),
    (f"{ASSUMING[0]} --bytes=8 --root=-1", "--root", "-1 is not in the range x>=0"),
    ("plan -n 8 --bytes 8 --profile=", "the name is empty; name a file"),
    ("reproduce bruck1996 table1 --out=", "the name is empty; name a folder"),
    ("tune -n 2 --report /", "/ is a folder"),
    *((f"{name} frobnicate", "unexpected extra argument (frobnicate)") for name in ON_RANKS),
    ("measure -n 4 --placement 2x3", "4 ranks: the placement has 6; give as many to both"),
    ("tune -n 4 --placement 2x3", "4 ranks: the placement has 6; give as many to both"),
    # One file for two options:
    ("bench --csv x --record ./x", "'--record'", "is the file of --csv, too; name"),
    ("bench --report x.svg --picture x.svg", "'--picture'", "is the file of --report, too; name"),
    ("bench --profile x --csv x", "'--csv'", "is the file of --profile, too; name"),
    ("tune --save x --report x", "'--report'", "is the file of --save, too; name"),
    ("tune --save collwise-report.html", "'--report'", "is the file of --save, too; name"),
    ("tune --report profile.json", "'--save'", "is the file of --report, too; name"),
    ("tune --report link/x --save x", "'--save'", "is the file of --report, too; name"),
    ("run --profile x --json x script.py", "'--json'", "is the file of --profile, too; name"),
    # Options that say nothing about what is raced:
    ("bench --op max", "broadcast with --op", "it is for reduce, allreduce"),
    ("bench --sources 1,", "broadcast with --sources", "allgatherv only"),
    ("bench --collective allreduce --root 1", "allreduce with --root"),
    ("bench --collective allgatherv --dtype int32", "allgatherv with --dtype"),
    ("tune --collective broadcast --pattern row", "broadcast with --pattern"),
    ("tune --collective allgatherv,broadcast --op max", "allgatherv and broadcast with"),
    ("tune --pattern row", "--pattern row without a number"),
    # Names that there are not:
    ("bench --collective allgatherv --pattern x", "source distribution 'x'"),
    ("bench --collective s_to_q", "collective 's_to_q'", "mean s_to_p?"),
    ("bench --collective all,x", "known: allgather", ", all\n"),
    ("bench --collective all,brodcast", "did you mean broadcast, "),
    ("bench --algorithm brin", "algorithm 'brin'"),
    ("bench --algorithm chain --algorithm postal_tree(lam=x)", "lam: 'x'"),
    ("bench --algorithm binomial(k=2)", "binomial with k: it has no such parameter"),
    ("bench --algorithm library:recexch(k=-5)", "k = -5 is no whole number"),
    ("bench --algorithm library:recexch(k=1e9)", "k = 1e9 is no whole number"),
    ("inspect --collective s_to_q", "collective 's_to_q'"),
    ("inspect --picture t.gif", "t.gif ends in '.gif'"),
    ("inspect --op max", "No such option"),
    ("inspect --bytes 0,8", "collectives of 0 bytes: they show nothing; give sizes from 1 B"),
    ("inspect --bytes 8,2G", "inspect collectives of 2147483648 bytes"),
    # Scripts:
    ("run", "none is named; name a file, or -m and a module"),
    ("run -m", "none is named"),
    ("run --sumary x.py", "--sumary"),
    ("run link", "run link: there is no such file"),
    ("run nowhere.py", "run nowhere.py: there is no such file"),
    ("run ", "there is no such file"),
    (f"run {'x' * 5000}", "there is no such file"),
    ("run /dev/zero", "run /dev/zero: a pipe or device cannot be read twice"),
    # Sweeps:
    ("bench --bytes 64:8:2", "from 64 to 8 bytes by a factor of 2 there are none; begin at 1"),
    ("bench --bytes 8:64:1", "by a factor of 1 there are none"),
    ("bench --bytes 8:64:0.5", "by a factor of 0.5 there are none"),
    ("bench --bytes 0:64", "from 0 to 64 bytes"),
    ("bench --bytes 1:1G:1.00001", "more than 1000"),
    ("bench --bytes 8:16:2:3", "more than three parts"),
    ("bench --bytes :8", "'' is no size"),
    ("bench --bytes 8 -b 8", "give --bytes, or -b, -e and -f"),
    ("bench -e 8", "-e 8 is below the smallest size, 512: give -b, too"),
    ("bench -f 8", "-f is the step from the smallest size to -e: give that, too"),
    ("bench -b 8 -f 8", "-f is the step"),
    ("bench -b 8 -e 64 -f 0", "from 8 to 64 bytes by a factor of 0 there are none"),
    ("bench --on 2,x", "'x' is no number of ranks; give some such as 2,4,8"),
    ("bench --on 0", "'0' is no number of ranks"),
    ("bench --precision 200%", "200% is no share; give 0% to 100%"),
    ("bench --precision 5", "5 is no share; give 0% to 100%, such as 2%"),
    ("bench --order random:", "'' is no seed; give up to 18 digits, as in random:1"),
    ("bench --order random:x", "'x' is no seed", "as in random:1"),
    ("bench --order random:-1", "'-1' is no seed"),
    ("bench --order absent", "absent cannot be read", "or random:1"),
    ("bench --resume", "name it with --record"),
    ("bench --record old.json", "it is there already; add --resume"),
    ("bench --record old.json --resume", "read the record old.json: its format is None"),
    # Calls of a program:
    ("tune --from-summary old.json", "tune for the calls in old.json: "),
    ("tune --from-summary old.json --bytes 8", "says what to race: leave out --bytes"),
    ("tune --from-summary old.json --collective all", "leave out --collective"),
    ("tune --from-summary old.json --root 0", "leave out --root"),
    ("tune --from-summary old.json --op max", "leave out --op"),
]
"""Command lines, and what is said of each."""


@pytest.mark.parametrize("asked", REFUSED, ids=lambda asked: asked[0][:80])
def test_refused(collwise: Run, folder: Path, asked: tuple[str, ...]) -> None:
    """No record is lost, and no file made."""
    (folder / "old.json").write_text("{}")
    (folder / "link").symlink_to(folder)
    line, *words = asked
    collwise(*line.split(" ")).refused(*words)
    assert (folder / "old.json").read_text() == "{}"
    assert {path.name for path in folder.iterdir()} == {"old.json", "link"}


def test_numbers_at_the_ends_of_their_ranges(collwise: Run) -> None:
    asked = ("plan", "-n", 2**31 - 1, "--bytes", 8, "--t0", "1e-3", "--lam")
    for lam in ("4", "9/5", "1.8", "1", "1E1"):
        collwise(*asked, lam).printed()


@pytest.mark.parametrize("asked", [["--op", "max"], ["--sources", "1,"], ["--root", "1"]])
def test_options_for_some_of_all(collwise: Run, asked: list[str]) -> None:
    """What says something about one of several collectives is welcome, and ranks are started."""
    assert "AssertionError: ranks were started" in collwise("tune", "-n", 2, *asked).err


def test_all_in_any_letters(collwise: Run) -> None:
    """As the help of some programs writes it."""
    found = collwise("plan", "allgatherv", "-n", 4, "--bytes", 8, "--sources", "ALL", *POSTAL)
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("allgatherv of 32 bytes from 4 ")
    assert "ranks were started" in collwise("tune", "-n", 2, "--collective", "All").err


def test_a_named_pipe_that_nobody_reads(tmp_path: Path) -> None:
    """It was noticed after measuring."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(click.BadParameter, match="is a named pipe that nobody reads; name another"):
        OUTPUT.convert(pipe, None, None)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert OUTPUT.convert(pipe, None, None) == pipe
    with pytest.raises(BlockingIOError):  # not the end: somebody will write
        os.read(reader, 1)
    os.close(reader)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("8:64:2", (8, 16, 32, 64)),
        ("8:64", (8, 16, 32, 64)),
        ("8:60:2", (8, 16, 32)),
        ("1:4:3/2", (1, 2, 3)),
        ("1k", (1024,)),
        ("7:7:9", (7,)),
        ("64,0,8:16", (0, 8, 16, 64)),
    ],
)
def test_ranges_of_sizes(text: str, sizes: tuple[int, ...]) -> None:
    assert SIZES.parse(text) == sizes


def test_orders_of_ranks(tmp_path: Path) -> None:
    assert _parse_order("random:1")(8) == Random(1).sample(range(8), 8)
    path = tmp_path / "order.txt"
    path.write_text("1, 0\n2\n")
    assert _parse_order(str(path))(3) == [1, 0, 2]
    for ranks, text in ((4, "1, 0\n2\n"), (2, "1, 1"), (2, "1, x 0")):
        path.write_text(text)
        with pytest.raises(InvalidArgument, match=rf"does not list each of 0 to {ranks - 1} once"):
            _parse_order(str(path))(ranks)
