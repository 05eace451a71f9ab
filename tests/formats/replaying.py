"""Replays a time-independent trace with SimGrid, set to be a postal machine exactly."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

LIMIT_S = 300
SMPIRUN = shutil.which("smpirun")
_PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="h" suffix="" radical="0-{last}" speed="1Gf" bw="1e15Bps"
           lat="{latency:.17g}s" sharing_policy="FATPIPE" bb_bw="1e15Bps" bb_lat="0s"
           bb_sharing_policy="FATPIPE"/>
</platform>
"""


def replayed_s(actions: Iterable[str], ranks: int, t0_s: float, lam: float, folder: Path) -> float:
    """Simulated seconds on a postal machine.

    A send keeps its sender busy for t0; the message arrives (λ − 1)·t0 later.  The latency from end
    to end is twice that of a link of a cluster.
    """
    (folder / "platform.xml").write_text(
        _PLATFORM.format(last=ranks - 1, latency=(lam - 1) * t0_s / 2)
    )
    (folder / "hosts").write_text("".join(f"h{rank}\n" for rank in range(ranks)))
    (folder / "trace").write_text("".join(f"{action}\n" for action in actions))
    (folder / "list").write_text(f"{folder / 'trace'}\n")
    settings = [
        "network/model:SMPI", "smpi/bw-factor:0:1", "smpi/lat-factor:0:1", "network/TCP-gamma:0",
        "network/weight-S:0", "network/crosstraffic:0", "smpi/send-is-detached-thresh:1000000000",
        "smpi/async-small-thresh:0", f"smpi/ois:0:{t0_s:.17g}:0", "smpi/or:0:0:0",
        "smpi/simulate-computation:no", "smpi/display-timing:yes",
    ]  # fmt: skip
    assert SMPIRUN is not None
    command = [
        SMPIRUN, "-np", str(ranks), "-platform", "platform.xml", "-hostfile", "hosts",
        *(f"--cfg={setting}" for setting in settings), "-replay", "list",
    ]  # fmt: skip
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    found = re.search(r"Simulation time ([0-9.e+-]+)", ran.stdout + ran.stderr) or re.search(
        r"[Ss]imulated time: ([0-9.e+-]+)", ran.stdout + ran.stderr
    )
    assert found, ran.stdout + ran.stderr
    return float(found[1])
