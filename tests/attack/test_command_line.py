"""Command lines that nobody should type: exit code 0, 1 or 2, a message, no traceback, and soon."""

import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import click
import pytest

from collwise.cli import COMMANDS
from collwise.cli import collwise as command_line
from collwise.cli.failures import failing_clearly
from tests.attack.test_public_api import soon
from tests.profiles.example import example, won_race
from tests.tuning.examples import WITH_NODES

ODD = (
    *("", " ", "-1", "0", "1", "2", "7", "1.5", "nan", "inf", "-inf", "1e999", "1e-999", "9/5"),
    *("1/0", "0x10", "²", "٣", "λ", "🙂", "a\nb", "%s", "{}", "$HOME", "--", "-", "-n", "--json"),
    *("64k", "1P", "1e6", "5ms", "-5ms", "10mbit", "None", "true", "all", "x" * 5000),
    *("99999999999999999999", "4x8", "0x8", "8x", "mesh:2x4", "mesh:0x4", "torus:2", "hypercube:3"),
    *("hypercube:99", "complete:8", "ring:8", "broadcast", "reduce", "MPI_Bcast", "allgatherv"),
    *("sum", "MPI_SUM", "MPI.SUM", "add", "float64", "object", "U3", "datetime64[s]", "rank"),
    *("0,1", "0-3", "3-0", "0-99999999", "0,0", "5,", ",", "equal", "cross", "chain", "lam=4"),
    *("lam=", "=4", "segment=0", "segment=4k", "paragon", "cray", "postal_tree", "br_lin"),
    *("/dev/zero", "/dev/null", "/", "pipe", "folder", "absent.json", "empty.json", "large.json"),
    *("machine.toml", "program.goal", "8:64:2", "64:8", "8:8:8:8", "1:1G:1.0001", "5%", "200%"),
    *("2x2: 1us,2; 5us,3", "ethernet:2x2", "1x1000000x1000000", "out.json"),
    *("calls.json", "chain <= 4k, library", "knomial(k=²)", "list", "forget", "2+2, round robin"),
    *("profile.json", "half.json", "folder/x.png", "pipe.png", "x.svg", "x.gif", "/proc/self/mem"),
)
DAMAGED = [f"damaged{number}.json" for number in range(250)]
"""Profiles in which a value, or some bytes, are others."""
POSTAL = "-n 8 --bytes 512 --t0 1ms --lam 4"
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2.5, -1e-9, 1e-300, 1e12, 1e308, 2**31, 2**63, 10**400, float("nan")),
    *(float("inf"), "", "x", "1", "3/2", "\0", "🙂", "x" * 10_000, [], [1], [[]], {}, {"a": 1}),
)
"""What stands in damaged profiles."""
RIGHT = [
    line.split()
    for line in (
        f"plan {POSTAL}",
        f"plan allreduce {POSTAL} --op max --dtype int32 --json",
        "plan reduce -n 5 --bytes 4k --profile profile.json",
        "plan allgatherv -n 8 --bytes 2k --pattern cross --sources 3 --preset paragon",
        f"simulate {POSTAL}",
        f"simulate {POSTAL} --algorithm chain_segmented --set segment=64",
        "simulate s_to_p -n 8 --bytes 64 --sources 0,5 --topology mesh:2x4 --alpha 1 --beta 1ns",
        "simulate -n 8 --bytes 64 --send 1us --receive 1us --hop 1ns --beta 1ns",
        "simulate reduce -n 4 --bytes 64 --latency 5us --overhead 1us --gap 1us --per-byte 1ns",
        f"simulate {POSTAL} --picture x.svg --algorithm chain",
        "plan -n 4 --bytes 512 --levels machine.toml",
        "simulate allreduce -n 4 --bytes 64 --levels 2x2:1us,2;5us,3",
        f"export goal {POSTAL} --out out.json",
        "export smpi reduce -n 4 --bytes 64 --alpha 1us --beta 1ns --algorithm binomial",
        f"export chrome-trace {POSTAL} --json",
        "simulate --goal program.goal --t0 1ms --lam 4 --picture x.svg",
        "compare profile.json profile.json --fail-above 1.1",
        "wisdom list --json",
        "wisdom show profile.json",
        "wisdom why allreduce -n 4 --bytes 64 --profile profile.json --json",
        "wisdom merge profile.json profile.json --out merged.json",
        "wisdom copy out.json --profile profile.json",
        "wisdom import profile.json",
        "wisdom forget profile.json --collective broadcast -n 4",
        # These start ranks, and are refused before they do.
        "tune -n 2 --from-summary calls.json --budget 1 --save",
        "tune -n 2 --bytes 64 --budget 1 --save",
        "bench -n 2 --bytes 64 --budget 1 --profile",
        "inspect -n 2 --bytes 64 --budget 1 --collective bcast,reduce --picture",
        "bench -n 2 --bytes 8:64k:2 --on 2 --collective all --record out.json --profile",
        "bench -n 2 -b 8 -e 64 -f 2 --precision 5% --csv out.csv --profile",
        "scan -n 2 --bytes 8:64k:4 --collective all --budget 1 --profile",
        "measure -n 2 --budget 1 --save",
        "reproduce bruck1996 fig6 --claims --json",
    )
]
"""Command lines that are right, but for the end of the last ones."""


@pytest.fixture
def odd_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with files of all kinds."""
    monkeypatch.chdir(tmp_path)
    for name in ("COLLWISE_PROFILE", "COLLWISE_STATUS_FILE", "COLLWISE_TERMINAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "folder").mkdir()
    os.mkfifo("pipe")
    os.mkfifo("pipe.png")
    example().save("profile.json")
    text = Path("profile.json").read_bytes()
    sound = WITH_NODES.with_race_results([won_race(), won_race(ranks=5, decision="library")])
    Path("half.json").write_bytes(text[: len(text) // 2])
    document = sound.to_json().encode()
    for number, name in enumerate(DAMAGED):
        Path(name).write_bytes(damaged(document, random.Random(number)))
    Path("empty.json").touch()
    level = '[[levels]]\ncosts = "1us,2"\n'
    Path("machine.toml").write_text(f'placement = "2x2"\n{level}{level}')
    Path("program.goal").write_text(
        "num_ranks 2\nrank 0 { send 8b to 1 }\nrank 1 {\nrecv 8b from 0 }"
    )
    Path("calls.json").write_text('{"format": "collwise calls", "ranks": 2, "calls": []}')
    with Path("large.json").open("wb") as file:
        file.truncate(1 << 34)  # a hole: it takes no room
    return tmp_path


def damaged(text: bytes, chance: random.Random) -> bytes:
    """A profile with one to three wrong values; or with wrong bytes."""
    if chance.random() < 0.2:
        wrong = bytearray(text)
        for _ in range(chance.randrange(1, 5)):
            wrong[chance.randrange(len(wrong))] = chance.randrange(256)
        return bytes(wrong)
    document = json.loads(text)
    for _ in range(chance.randrange(1, 4)):
        place: Any = document
        while True:
            keys = [*place] if isinstance(place, dict) else [*range(len(place))]
            key = chance.choice(keys)
            if not isinstance(place[key], dict | list) or not place[key] or chance.random() < 0.1:
                break
            place = place[key]
        if chance.random() < 0.2:
            del place[key]
        else:
            place[key] = chance.choice(VALUES)
        if not document:
            break
    return json.dumps(document).encode()


def command_of(words: list[str]) -> tuple[click.Command, int]:
    """The command that the first words name, and how many they are."""
    command: click.Command | None = command_line
    named = 0
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), words[named])
        named += 1
    assert command is not None
    return command, named


def generated(chance: random.Random) -> list[str]:
    """A command line: a right one in which some words are odd, gone, or more options given."""
    if chance.random() < 0.02:
        return [chance.choice(ODD) for _ in range(chance.randrange(4))]
    words = list(chance.choice(RIGHT))
    ends = [""] if words[-1].startswith("--") and words[-1] != "--json" else []
    command, named = command_of(words)
    options = [one for one in command.params if isinstance(one, click.Option)]
    for place in [at for at, word in enumerate(words) if word == "profile.json"]:
        if chance.random() < 0.5:
            words[place] = chance.choice(DAMAGED)
    for _ in range(chance.choice([0, 1, 1, 1, 2, 2, 3])):
        place = chance.randrange(min(named, len(words) - 1), len(words))
        match chance.randrange(4):
            case 0:
                words[place] = chance.choice(ODD)
            case 1 if len(words) > 1:
                del words[place]
            case 2 if words[place].startswith("-") and place + 1 < len(words):
                words[place + 1] = chance.choice(ODD)
            case _ if options:
                option = chance.choice(options)
                value = [] if option.is_flag else [chance.choice(ODD)]
                words[place:place] = [chance.choice(option.opts), *value]
    if words[0] == "reproduce":  # refused: it takes minutes
        words += ["no-such-item"] * 2
    if words[0] in ("tune", "bench", "scan", "measure", "inspect"):  # the last word is refused
        last = {"bench": "--profile", "scan": "--profile", "inspect": "--picture"}.get(
            words[0], "--save"
        )
        words = [word for word in words if word != "--"] + (
            [last, ""] if words[-1] != last else ends
        )
    return words


def problem_with(
    words: list[str], capfd: pytest.CaptureFixture[str], codes: Counter[object]
) -> str:
    """What is wrong with how one command line ended; empty if nothing is."""
    shown = " ".join(word[:40] for word in words)
    capfd.readouterr()
    code: object = None
    try:
        with soon(shown), failing_clearly():
            command_line.main(words, prog_name="collwise", standalone_mode=False)
            code = 0
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{shown}: {type(error).__name__}: {error}"
    out, err = capfd.readouterr()
    codes[code] += 1
    if code not in (0, 2):
        return f"{shown}: exit code {code}"
    if "Traceback" in err + out or "report it" in err:
        return f"{shown}: {err[-400:]}"
    if code and not err.strip():
        return f"{shown}: exit code {code} without a word"
    return ""


EXHAUSTIVE = [pytest.param(1_000, seed, marks=pytest.mark.exhaustive) for seed in range(2, 6)]


@pytest.mark.parametrize(("count", "seed"), [(300, 1), *EXHAUSTIVE])
@pytest.mark.usefixtures("odd_files")
def test_odd_command_lines(count: int, seed: int, capfd: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(seed)
    before = {path: os.lstat(path).st_mode for path in ("/dev/null", "/dev/zero", "pipe.png")}
    codes: Counter[object] = Counter()
    problems = [problem_with(generated(chance), capfd, codes) for _ in range(count)]
    assert not any(problems), "\n".join(filter(None, problems))
    assert codes[0] > count // 50, "hardly any is right: the attack does not get far"
    assert before == {path: os.lstat(path).st_mode for path in before}
    assert not list(Path().rglob("*.tmp")), "half a file was left"


def test_every_command_is_attacked_or_starts_something() -> None:
    # They start hosts and servers, ask the machine, and run scripts.
    others = {"explore", "lab", "doctor", "run"}
    assert {line[0] for line in RIGHT} == COMMANDS.keys() - others
