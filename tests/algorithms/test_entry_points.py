"""Algorithms of other packages, found by their entry points."""

import subprocess
import sys
from pathlib import Path

from tests.mpi.launching import LIMIT_S

MINE = """
import collwise as cw
chain = cw.ALGORITHMS["broadcast/chain"]
cw.register(cw.Algorithm(name="broadcast/mine", summary="s", source=(), time="t",
                         build=chain.build, predicted=chain.time_of))
"""
ASKED = """
import logging
logging.basicConfig(format="%(message)s")
import collwise as cw
machine = cw.Machine.postal(t0_s=1, lam=2)
plan = cw.plan("broadcast", ranks=4, nbytes=8, machine=machine, algorithm="mine")
cw.verify(plan.schedule)
print(plan.algorithm)
"""


def test_a_package_brings_algorithms(tmp_path: Path) -> None:
    for name, points in {"mine": "mine = mine", "lost": "lost = no_such_module"}.items():
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[collwise.algorithms]\n{points}\n")
    (tmp_path / "mine.py").write_text(MINE)
    ran = subprocess.run(
        [sys.executable, "-c", ASKED],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        cwd=tmp_path,
    )
    assert (ran.returncode, ran.stdout) == (0, "broadcast/mine\n"), ran.stderr
    assert "no algorithms of no_such_module" in ran.stderr
