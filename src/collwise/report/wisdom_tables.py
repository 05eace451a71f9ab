"""Tables of the saved profiles, and of the races in one profile."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from collwise.errors import DamagedProfile
from collwise.measure.race import LIBRARY, own_algorithm
from collwise.profiles.profile import Profile
from collwise.profiles.records import RaceResult
from collwise.report.tables import Table, attributes
from collwise.system import formatting


def list_document(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Every saved profile as JSON; for a damaged profile, what is wrong with the file."""
    documents: list[dict[str, Any]] = []
    for path in paths:
        known: dict[str, Any] = {"name": path.stem, "path": str(path)}
        try:
            profile = Profile.load(path)
        except DamagedProfile as problem:
            documents.append({**known, "damaged": problem.seen})
            continue
        races = Counter(race.ranks for race in profile.race_results)
        documents.append(
            {
                **known,
                **attributes(profile.fingerprint, "mpi_library", "layout", "cpu_model"),
                "measured": [campaign.provenance.ranks_per_node for campaign in profile.every],
                "races": {str(ranks): number for ranks, number in sorted(races.items())},
                "created": profile.provenance.created,
                "verdict": profile.verdict,
            }
        )
    return documents


def list_table(documents: Iterable[dict[str, Any]]) -> Table:
    """The documents of `list_document` as a table."""
    rows = []
    for known in documents:
        races = ", ".join(f"{n} on {ranks}" for ranks, n in known.get("races", {}).items())
        rows.append(
            {
                "name": known["name"],
                "library": known.get("mpi_library", "-"),
                "layout": known.get("layout", "-"),
                "nodes x ranks": ", ".join(known.get("measured", ["-"])),
                "races (on ranks)": races or "-",
                "last change": known.get("created", "-"),
                "verdict": known.get("verdict", f"damaged: {known.get('damaged')}"),
            }
        )
    return Table("Saved profiles", rows, optional=("layout", "last change", "verdict"))


def _whose(race: RaceResult) -> str:
    """Whose algorithm serves a race's calls: the library's default, its other one, or ours."""
    if race.decision == LIBRARY:
        return "the library"
    return "collwise" if own_algorithm(race.algorithm) is None else "the library's other"


def races_table(races: Iterable[RaceResult], title: str = "Races") -> Table:
    """The table of races: both times, the interval of the speed-up, and whose algorithm serves."""
    rows = [
        {
            "collective": race.collective,
            "form": race.form,
            "ranks": str(race.ranks),
            "size": formatting.size(race.nbytes),
            "sources": str(race.sources or "-"),
            "fastest of ours": race.algorithm,
            "ours": formatting.time(race.ours_s),
            "library": formatting.time(race.library_s),
            "speed-up": f"{race.speedup_low:.2f} to {race.speedup_high:.2f}",
            "serves": _whose(race),
            "evidence": "learned while running" if race.learned else "race",
        }
        for race in races
    ]
    return Table(title, rows, optional=("sources",))
