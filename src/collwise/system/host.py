"""What this machine is: its processor, and the cores this process may use."""

import os
import platform
from pathlib import Path

LAB = "COLLWISE_LAB"
"""The environment variable in which `collwise lab` tells its commands the emulated network."""


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name, as the system reports it; never empty."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    facts: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and value.strip():
            facts.setdefault(key.strip(), " ".join(value.split()))
    for key in ("model name", "cpu model", "cpu", "Processor", "uarch"):
        if key in facts:
            return facts[key]
    if "CPU part" in facts:  # Arm gives numbers only
        return f"Arm implementer {facts.get('CPU implementer', '?')} part {facts['CPU part']}"
    return platform.processor() or platform.machine() or "unknown"


def usable_cores(
    quota: Path = Path("/sys/fs/cgroup/cpu.max"), *, processors: int | None = None
) -> int:
    """Logical processors that this process may use: what its affinity and its container allow.

    quota: the control group's file.  processors: the affinity's count (looked up if not given).
    """
    cores = processors or (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    try:
        limit, period = quota.read_text(encoding="ascii").split()
        if limit != "max":
            cores = min(cores, max(1, round(int(limit) / int(period))))
    except (OSError, ValueError, ZeroDivisionError):
        pass  # no control group, so no quota
    return cores
