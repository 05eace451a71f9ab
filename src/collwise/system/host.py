"""What this machine is: its processor, and the cores this process may use."""

import os
import platform
import sys
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


def affinity() -> frozenset[int]:
    """The logical processors on which this process may run; empty where the system does not say."""
    return frozenset(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ())


def core_limit(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """How many processors' time the container allows; more than there are where it says nothing.

    quota: the control group's file.
    """
    try:
        limit, period = quota.read_text(encoding="ascii").split()
        return max(1, round(int(limit) / int(period)))  # ValueError for "max"
    except (OSError, ValueError, ZeroDivisionError):
        return sys.maxsize


def usable_cores() -> int:
    """Logical processors that this process may use: what its affinity and its container allow."""
    return min(len(affinity()) or os.cpu_count() or 1, core_limit())
