"""Proves that exported rules are in force, and races the chosen algorithms once more.

The library is started twice, with and without the rules: `main` runs on the ranks.  A rule is in
force if a plain call with the rules has the same fingerprint as a call of the rule's algorithm
without them, and the library's default has another one.  Sizes just outside of a rule must keep the
default's fingerprint.  Where the job forces algorithms, a third launch tells the default's: nothing
is forced there, as with the rules.  A rule for several ranks on each of several nodes is checked
only if the ranks are placed in that way.

Where fingerprints do not tell, the library's counters do, if it has any: ranks run `repeat`.
"""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any, NamedTuple

import msgspec
import numpy as np

from collwise.errors import RanksLost
from collwise.formats.selection_rules import Rule, RuleFormat
from collwise.measure.race import BLOCKING, OWN
from collwise.measure.statistics import Interval
from collwise.planner.choose import problem_for
from collwise.planner.plans import Candidate
from collwise.profiles.records import USUAL_WITHIN
from collwise.schedule.collectives import COLLECTIVES
from collwise.system import formatting
from collwise.system.launcher import ask, command_line, ran

RACE_S = 2.0
"""The most seconds for each race, which ends earlier once its medians are known well enough."""
REPEATS = 100
"""The calls of each size that are counted: more than there are at start and end."""
_START_S, _EACH_S = 120.0, 20.0
"""The seconds allowed for starting ranks, and for each rule besides its races."""


class Checked(NamedTuple):
    """The result of the check of one rule.

    in_force: None if unknown, for example if algorithm and default have the same fingerprint.
    elsewhere: whether sizes outside of the rule kept the default.   speedup: the default's time
    divided by the algorithm's, at the first raced size; None if the algorithm cannot run without
    the rules, or was not checked.   here: the ranks' placement if the rule was not checked because
    it needs another one; else empty.
    """

    rule: Rule
    in_force: bool | None
    elsewhere: bool
    speedup: Interval | None
    here: str = ""

    @property
    def failed(self) -> bool:
        """Whether the rule surely is not in force, or changes the default at other sizes."""
        return self.in_force is False or not self.elsewhere

    def __str__(self) -> str:
        said = {
            True: "in force",
            False: "NOT in force",
            None: "no fingerprint tells it from the default",
        }
        words = [str(self.rule), said[self.in_force]]
        if self.here:
            return f"{self.rule}; not checked: the ranks lie {self.here} here"
        if self.speedup is not None:
            low, high = self.speedup.low, self.speedup.high
            words.append(f"{low:.2f} to {high:.2f} times as fast as the default")
        return "; ".join(words + ["other sizes have CHANGED, too"] * (not self.elsewhere))


def check(rules: Sequence[Rule], environment: Mapping[str, str], form: RuleFormat) -> list[Checked]:
    """Check the rules by starting ranks on this machine, with and without `environment`.

    environment: the variables that put the rules in force.   form: the format of the rules.
    Raises RanksLost if the ranks do not finish, NoMPI if they cannot be started.
    """
    checked, undoing = [], form.undoing(rules)
    for ranks in sorted({rule.ranks for rule in rules}):
        some = [rule for rule in rules if rule.ranks == ranks]
        new_told, old_told = (_ran(some, more) for more in (environment, {}))
        usual_told = _ran(some, undoing) if os.environ.keys() & undoing.keys() else old_told
        for rule, new, old, usual in zip(some, new_told, old_told, usual_told, strict=True):
            if rule.composed and new["here"] != rule.ranks_per_node:
                checked.append(Checked(rule, None, elsewhere=True, speedup=None, here=new["here"]))
                continue
            in_force = _in_force(new["plain"], old["forced"], old["plain"])
            if in_force is None and form.counters and not rule.changed:
                in_force = _counted(rule, environment, *form.counters)
            speedup = msgspec.convert(old["speedup"], Interval | None)
            outside = zip(new["outside"], usual["outside"], strict=True)
            elsewhere = all(None in both or both[0] == both[1] for both in outside)
            checked.append(Checked(rule, in_force, elsewhere, speedup))
    return checked


def _in_force(
    plain: Sequence[str | None], forced: Sequence[str | None] | None, default: Sequence[str | None]
) -> bool | None:
    """Whether calls with the rules ran the rule's algorithm, by fingerprints; None if unknown.

    forced: the algorithm's fingerprints; None if it cannot run without the rules.
    """
    if None in {*plain, *default, *(forced or ())}:
        return None
    if forced is None:
        return None if plain == default else True
    return None if forced == default else plain == forced


def _counted(rule: Rule, environment: Mapping[str, str], name: str, line: str) -> bool | None:
    """Whether all calls with the rules ran the rule's algorithm; None if the library tells none."""
    code = f"from collwise.tuning.export_check import repeat; repeat{rule.method, rule.raced}"
    command = command_line(rule.ranks, [sys.executable, "-c", code])
    printed, _ = ran(command, {**environment, name: "0"}, _START_S + _EACH_S)
    counted = sum(map(int, re.findall(line.format(rule.method, rule.name), printed)))
    told = re.search(line.format(r"\w+", r"\w+"), printed)
    return 0 <= counted - REPEATS * len(rule.raced) < REPEATS if told else None


def repeat(method: str, sizes: Sequence[int]) -> None:
    """Make REPEATS plain calls of `method` for each message size in bytes, on all ranks."""
    from collwise.mpi.runtime.world import world

    comm = world()
    for nbytes in sizes:
        vector, block = (np.zeros(-(-nbytes // (8 * parts))) for parts in (1, comm.size))
        blocks = np.tile(block, comm.size)
        usual = (block, blocks) if "Allgather" in method else (vector, vector.copy())
        given = {"Bcast": (vector,), "Reduce_scatter_block": (blocks, block)}.get(method, usual)
        for _ in range(REPEATS):
            getattr(comm, method)(*given)


def _outside(rule: Rule, others: Sequence[Rule]) -> list[int]:
    """Message sizes just outside a rule that no other rule covers: multiples of 8 bytes × ranks."""
    step = 8 * rule.ranks
    near = rule.first // step * step - step, (rule.last // step + 2) * step
    served = [one for one in others if one.method == rule.method]
    return [n for n in near if n > 0 and not any(one.first <= n <= one.last for one in served)]


def _ran(rules: Sequence[Rule], environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """The ranks' answers about each rule, from one launch with these environment variables."""
    asked = [
        [rule.collective, rule.method, rule.raced, rule.name, rule.changed, _outside(rule, rules)]
        for rule in rules
    ]
    count = formatting.count(rules[0].ranks, "rank")
    question = json.dumps([bool(environment), asked])
    command = [sys.executable, "-m", "collwise.tuning.export_check", question]
    limit_s = _START_S + (_EACH_S + RACE_S) * len(rules)
    answers, trouble = ask(command_line(rules[0].ranks, command), environment, limit_s)
    if not answers:
        seen = f"with {', '.join(environment) or 'no rules'} they did not finish: {trouble}"
        raise RanksLost(f"the check on {count}", seen, "run collwise doctor")
    found: list[dict[str, Any]] = answers[0]["rules"]
    return found


def main(question: str) -> None:
    """Print, on rank 0, the answers about the rules in `question`, which is JSON."""
    from collwise.comm.communicator import Comm
    from collwise.mpi.runtime.world import describe, world
    from collwise.tuning.session import Session

    comm, told = world(), []
    with Session(comm, known := describe(comm)) as session:
        with_rules, asked = json.loads(question)
        for collective, method, raced, name, settings, outside in asked:
            kind, forced, speedup = COLLECTIVES[collective], None, None
            seen = partial(_seen, method=method)
            one = Candidate(f"{collective}/{OWN}{name}", settings, Fraction(0))
            if not with_rules:
                ranks, nbytes = comm.Get_size(), raced[0]
                given = {"sources": range(ranks), "nbytes": nbytes // ranks}
                more = given if kind.has_sources else {"nbytes": nbytes}
                problem, _ = problem_for(collective, ranks=ranks, **more)
                own = {one.label + BLOCKING: one}
                race = session.compare(problem, {}, {}, RACE_S, own=own, within=USUAL_WITHIN)
                speedup = race.speedup(race.best_own) if race.best_own != race.library else None
            if speedup is not None:
                by_hand = {collective: one.label.partition("/")[2]}
                ours = Comm(comm.Dup(), profile=False, algorithms=by_hand)
                forced = [seen(ours, nbytes=nbytes) for nbytes in raced]
                ours.Free()
            told.append(
                {
                    "plain": [seen(comm, nbytes=nbytes) for nbytes in raced],
                    "forced": forced,
                    "outside": [seen(comm, nbytes=nbytes) for nbytes in outside],
                    "speedup": speedup,
                    "here": known.ranks_per_node,
                }
            )
    if comm.Get_rank() == 0:
        print(f"\ncollwise:{json.dumps({'rules': told})}", flush=True)


def _seen(comm: Any, method: str, nbytes: int) -> str | None:
    """The fingerprint of a call of `method`, which is made; None if it has none.  Collective."""
    from collwise.mpi.library.fingerprints import broadcast_tree, early_blocks, summed

    if method == "Bcast":
        tree = broadcast_tree(comm, nbytes)
        return None if "undecided" in tree.why_not else str([sorted(late) for late in tree.late])
    if method == "Allgather":  # all algorithms have the same result
        early = early_blocks(comm, method, max(nbytes // comm.Get_size(), 1))
        return None if early is None else str([[sorted(some) for some in here] for here in early])
    draws = [Random(seed) for seed in range(4)]
    values = [
        [one.random() * 10.0 ** one.randrange(16) for _ in range(comm.Get_size())] for one in draws
    ]
    return str([summed(comm, method, nbytes, some).by_rank for some in values])


if __name__ == "__main__":
    main(sys.argv[1])
