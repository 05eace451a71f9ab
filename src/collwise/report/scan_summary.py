"""A scan in lines: what it found and what mends that, what was tried, what to do next."""

from collwise.measure.race import own_algorithm
from collwise.system import formatting
from collwise.tuning.scanning import MESSAGES, OWN_REMEDY, Scan


def scan_lines(scan: Scan) -> list[str]:
    """Lines on findings, in the scan's order, on what was tried or left out, and on what to do."""
    lines = ["found    nothing: no default is clearly too slow, and there is no cliff"]
    if scan.findings:
        lines = ["Worst first: how many times as long, with its 95 % interval"]
    for one in scan.findings:
        low, high = one.interval
        times = f"{one.ratio:.2f} ({low:.2f} … {high:.2f})"
        verb = "allow" if one.instead == MESSAGES else "takes"
        takes, least = formatting.time(one.takes_s), formatting.time(one.instead_s)
        where = f"{one.instead} {verb} {least}"
        lines.append(f"{times:<22}  {one.what} takes {takes} where {where}: {one.remedy}")
    labels = {label for medians_s in scan.medians_s.values() for label in medians_s}
    own = len({own_algorithm(label) for label in labels} - {None})
    lines.append(
        f"tried    {formatting.count(len(scan.medians_s), 'call')} in {scan.spent_s:.0f} s on"
        f" {scan.ranks} ranks: the default of {scan.library} against"
        f" {formatting.count(own, 'algorithm')} of its own, its persistent form, other collectives"
        " that do the same, one element more, twice the bytes"
        + ", one rank fewer" * (scan.ranks > 2)
        + ", and, where no rank waits for a core, the lower bound"
    )
    if scan.left_out:
        shortest = {name.split()[0]: name for name in reversed(scan.left_out)}.values()
        left = formatting.count(len(scan.left_out), "call")
        lines.append(f"left out {left}, as time ran out: {', '.join(shortest)}, and longer ones")
    if scan.unsettled:
        steps = "; ".join(scan.unsettled)
        lines.append(f"left out at which size the time rises steeply, between {steps}")
    if any(one.remedy == OWN_REMEDY for one in scan.findings):
        name = "openmpi" if "Open MPI" in scan.library else "mpich"
        lines.append("next     collwise tune makes it serve in Python programs that use collwise;")
        lines.append(f"         then collwise export {name} writes a file for all programs")
    return lines
