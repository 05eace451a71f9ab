"""Writes Chrome's trace events, which Perfetto and chrome://tracing show.

Each rank is a process with a track for its send port, its receive port and its combining; arrows
lead from sends to receipts.  Times are in microseconds.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from collwise.system import formatting
from collwise.timing import Timing

SENDS, RECEIVES, COMBINES = TRACKS = ("sends", "receives", "combines")


def chrome_trace(timing: Timing, what: str) -> dict[str, Any]:
    """A timing as Chrome's trace events, a JSON object.   what: a text on what was simulated."""
    return {
        "traceEvents": list(_events(timing)),
        "displayTimeUnit": "ns",
        "otherData": {"format": "collwise chrome-trace", "version": 1, "what": what},
    }


def _events(timing: Timing) -> Iterator[dict[str, Any]]:
    for rank in range(len(timing.finish)):
        yield _event("M", "process_name", rank, SENDS, args={"name": f"rank {rank}"})
        yield _event("M", "process_sort_index", rank, SENDS, args={"sort_index": rank})
        for track in TRACKS:
            yield _event("M", "thread_name", rank, track, args={"name": track})
    before: dict[int, Fraction] = {}
    for number, message in enumerate(timing.transfers):
        source, target, size = message.source, message.target, formatting.size(message.nbytes)
        args = {"bytes": message.nbytes, "from": source, "to": target}
        start, sent, received = message.start, message.sent, message.received
        # A receipt takes as long as its send, or less if the target's last receipt ends later.
        begin = max(received - (sent - start), before.get(target, Fraction(0)))
        before[target] = received
        flow = {"id": number, "cat": "message"}
        yield _slice(f"{size} to {target}", source, SENDS, start, sent, args)
        yield _slice(f"{size} from {source}", target, RECEIVES, begin, received, args)
        yield _event("s", "message", source, SENDS, ts=_us(start), **flow)
        yield _event("f", "message", target, RECEIVES, ts=_us(begin), bp="e", **flow)
    for combine in timing.combines:
        name, args = f"combine {formatting.size(combine.nbytes)}", {"bytes": combine.nbytes}
        yield _slice(name, combine.rank, COMBINES, combine.start, combine.end, args)


def _slice(
    name: str, rank: int, track: str, start: Fraction, end: Fraction, args: dict[str, int]
) -> dict[str, Any]:
    times = {"ts": _us(start), "dur": _us(end - start)}
    return _event("X", name, rank, track, cat=track, args=args, **times)


def _event(phase: str, name: str, rank: int, track: str, **more: Any) -> dict[str, Any]:
    return {"ph": phase, "name": name, "pid": rank, "tid": TRACKS.index(track), **more}


def _us(time: Fraction) -> float:
    return float(time * 10**6)
