"""Chrome's trace events, which Perfetto and chrome://tracing show.

Each rank is a process with a track for its send port, its receive port and its combining; arrows
lead from sends to receipts.  Times are in microseconds.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from collwise.system import formatting
from collwise.timing import Timing

SENDS, RECEIVES, COMBINES = "sends", "receives", "combines"
TRACKS = (SENDS, RECEIVES, COMBINES)


def chrome_trace(timing: Timing, what: str) -> dict[str, Any]:
    """The document.   what: was simulated, such as the problem and the algorithm."""
    return {
        "traceEvents": list(_events(timing)),
        "displayTimeUnit": "ns",
        "otherData": {"format": "collwise chrome-trace", "version": 1, "what": what},
    }


def _events(timing: Timing) -> Iterator[dict[str, Any]]:
    for rank in range(len(timing.finish)):
        yield _metadata("process_name", rank, 0, {"name": f"rank {rank}"})
        yield _metadata("process_sort_index", rank, 0, {"sort_index": rank})
        for track, name in enumerate(TRACKS):
            yield _metadata("thread_name", rank, track, {"name": name})
    before: dict[int, Fraction] = {}
    for number, message in enumerate(timing.transfers):
        size = formatting.size(message.nbytes)
        arguments = {"bytes": message.nbytes, "from": message.source, "to": message.target}
        yield _slice(
            f"{size} to {message.target}", message.source, SENDS, message.start, message.sent,
            arguments,
        )  # fmt: skip
        # The port's last part of the message, but never beyond the receipt before.
        begin = message.received - (message.sent - message.start)
        begin = max(begin, before.get(message.target, Fraction(0)))
        before[message.target] = message.received
        yield _slice(
            f"{size} from {message.source}", message.target, RECEIVES, begin, message.received,
            arguments,
        )  # fmt: skip
        flow = {"name": "message", "cat": "message", "id": number}
        yield {**flow, "ph": "s", **_place(message.source, SENDS), "ts": _us(message.start)}
        end = {"ph": "f", "bp": "e", "ts": _us(begin)}
        yield {**flow, **end, **_place(message.target, RECEIVES)}
    for combine in timing.combines:
        name = f"combine {formatting.size(combine.nbytes)}"
        yield _slice(
            name, combine.rank, COMBINES, combine.start, combine.end, {"bytes": combine.nbytes}
        )


def _metadata(name: str, rank: int, track: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "ph": "M", "pid": rank, "tid": track, "args": arguments}


def _slice(
    name: str, rank: int, track: str, start: Fraction, end: Fraction, arguments: dict[str, Any]
) -> dict[str, Any]:
    times = {"ts": _us(start), "dur": _us(end - start)}
    return {
        "name": name,
        "cat": track,
        "ph": "X",
        **_place(rank, track),
        **times,
        "args": arguments,
    }


def _place(rank: int, track: str) -> dict[str, int]:
    return {"pid": rank, "tid": TRACKS.index(track)}


def _us(time: Fraction) -> float:
    return float(time * 10**6)
