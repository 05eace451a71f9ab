"""A printed plan: the choice, the runners-up and why not, both lower bounds, what is excluded."""

from collwise.measure.race import LIBRARY
from collwise.planner.choose import decided, plan
from collwise.system import formatting
from tests.planner.machines import HOCKNEY, POSTAL


def test_a_plan_on_paper() -> None:
    made = plan("broadcast", ranks=8, nbytes=1000, machine=POSTAL, root=2, algorithm="postal_tree")
    assert str(made) == "\n".join(
        [
            "broadcast of 1000 bytes from rank 2 to 8 ranks",
            "machine      postal: t0 = 1 µs, λ = 9/5",
            "choice       broadcast/postal_tree(lam=9/5)",
            "predicted    4.80 µs",
            "lower bound  4.80 µs  (T_λ(p)·t0, with the least t0 and λ·t0 of any size)",
            "if uncut     4.80 µs  (T_λ(p)·t0, if everything goes in one message)",
            "candidates   1 of 1 schedule timed",
            "  broadcast/postal_tree(lam=9/5)     4.80 µs  chosen: it was named",
        ]
    )


def test_runners_up_and_the_excluded() -> None:
    made = plan("broadcast", ranks=2, nbytes=300, machine=HOCKNEY)
    head, _, table = str(made).partition(" timed\n")
    assert formatting.time(made.lower_bound_s) in head
    assert made.bound.argument in head
    assert formatting.time(made.unsegmented_bound.time_s) in head
    assert made.unsegmented_bound.argument in head
    assert made.excluded
    expected = [(c.label, formatting.time(c.predicted_s), c.verdict) for c in made.candidates]
    expected += [(name, "-", why) for name, why in made.excluded.items()]
    lines = table.splitlines()
    for line, (label, time, why) in zip(lines, expected, strict=True):
        assert line.split() == [*label.split(), *time.split(), *why.split()]
    column = {len(line) - len(c.verdict) for line, c in zip(lines, made.candidates, strict=False)}
    assert len(column) == 1, "the verdicts begin in one column"


def test_after_a_race() -> None:
    """What was measured is called so, and nothing is predicted for the library's own."""
    estimate = plan("broadcast", ranks=8, nbytes=1000, machine=POSTAL)
    ours = estimate.choice.label
    won = str(decided(estimate, {LIBRARY: 9e-6, ours: 5e-6}, ours)).splitlines()
    assert won[2:5] == [f"choice       {ours}", "predicted    4.80 µs", "measured     5.00 µs"]
    lost = str(decided(estimate, {LIBRARY: 5e-6, ours: 9e-6}, LIBRARY)).splitlines()
    assert lost[2:4] == ["choice       library", "measured     5.00 µs"]
    assert not any(line.startswith("predicted") for line in lost)
