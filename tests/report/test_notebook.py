"""What notebooks show of a plan, a trace and a profile."""

import subprocess
import sys
from typing import Any

import collwise as cw
from collwise.planner.choose import decided
from tests.mpi.launching import LIMIT_S
from tests.report.html_page import Page
from tests.tuning.examples import PROFILE

MACHINE = cw.Machine.postal(t0_s="1.7e-3", lam=4)


def shown(it: Any) -> tuple[str | None, str]:
    """Its picture, and its page."""
    return it._repr_svg_(), it._repr_html_()


def elements(html: str) -> list[str]:
    return [tag for tag, _ in Page(html).tags]


def test_a_plan_and_a_trace() -> None:
    """The pictures that --picture draws: in space, if it can be, and in time."""
    plan = cw.plan("broadcast", ranks=6, nbytes=48, machine=MACHINE)
    reduction = cw.plan("allreduce", ranks=6, nbytes=48, machine=MACHINE).schedule
    for it, count, words in (
        (plan, 2, plan.choice.label),
        (cw.simulate(reduction, MACHINE), 1, "complete after "),
    ):
        picture, html = shown(it)
        assert picture is not None
        assert picture.startswith("<svg")
        assert html.startswith(picture)
        assert elements(html).count("svg") == count
        assert words in html


def test_a_profile() -> None:
    assert cw.Profile is type(PROFILE)
    picture, html = shown(PROFILE)
    assert picture is not None
    assert elements(picture)[0] == "svg"
    assert PROFILE.verdict in html


def test_what_has_no_picture_has_words() -> None:
    large = cw.plan("broadcast", ranks=5000, nbytes=8, machine=MACHINE)
    plan = cw.plan("broadcast", ranks=4, nbytes=8, machine=MACHINE)
    library = decided(plan, {plan.choice.label: 2.0, "library": 1.0}, "library", "library")
    for it in (large, library):
        picture, html = shown(it)
        assert picture is None
        assert elements(html) == ["pre"]
        assert "lower bound" in html


def test_nothing_is_loaded_before_a_notebook_asks() -> None:
    code = (
        "import sys, collwise as cw\n"
        "plan = cw.plan('broadcast', ranks=4, nbytes=8, machine=cw.Machine.postal(t0_s=1, lam=2))\n"
        "assert hasattr(plan, '_repr_svg_')\n"
        "assert 'matplotlib' not in sys.modules\n"
        "assert 'collwise.report.notebook' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=LIMIT_S)
