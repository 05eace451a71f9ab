"""What is simulated or proved has to be a schedule, on a machine, on a topology."""

from collections.abc import Callable
from typing import Any

import pytest

import collwise as cw
from collwise.errors import InvalidArgument

MACHINE = cw.Machine.hockney(alpha_s=1, beta_s=1)
PLAN = cw.plan("broadcast", ranks=8, nbytes=8, machine=MACHINE)
PRESET = cw.presets["paragon"]
READERS: list[Callable[..., Any]] = [cw.ideal, cw.simulate, cw.verify]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("schedule", "seen"),
    [(None, "None"), (PLAN, "a Plan"), ("chain", "'chain'"), (cw.Schedule, "a type")],
)
def test_what_is_no_schedule(read: Callable[..., Any], schedule: Any, seen: str) -> None:
    read(PLAN.schedule, MACHINE)
    with pytest.raises(InvalidArgument) as caught:
        read(schedule, MACHINE)
    assert caught.value.seen == f"the schedule is {seen}"
    assert caught.value.remedy == "give a collwise.Schedule, such as plan.schedule"


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("machine", "seen"),
    [("paragon", "'paragon'"), (PRESET, "a Preset"), (cw.Machine, "a type"), (3, "3")],
)
def test_what_is_no_machine(read: Callable[..., Any], machine: Any, seen: str) -> None:
    read(PLAN.schedule, PRESET.machine)
    with pytest.raises(InvalidArgument) as caught:
        read(PLAN.schedule, machine)
    assert caught.value.seen == f"the machine is {seen}"
    assert "collwise.presets[name].machine" in caught.value.remedy


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("law", [None, "quantum"])
def test_a_machine_whose_law_nobody_knows(read: Callable[..., Any], law: Any) -> None:
    own = type("Own", (type(MACHINE),), {"law": law})(1, 1, 0)
    with pytest.raises(InvalidArgument) as caught:
        read(PLAN.schedule, own)
    assert caught.value.seen == f"the machine's law is {law!r}"
    with pytest.raises(InvalidArgument, match="the machine's law is"):
        cw.plan("broadcast", ranks=8, nbytes=8, machine=own)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("topology", ["mesh:2x4", (2, 4), 8, cw.topology.Mesh])
def test_what_is_no_topology(read: Callable[..., Any], topology: Any) -> None:
    read(PLAN.schedule, MACHINE, cw.topology.parse("mesh:2x4"))
    with pytest.raises(InvalidArgument) as caught:
        read(PLAN.schedule, MACHINE, topology)
    assert caught.value.seen == f"topology = {topology!r}"
    assert "topology.parse('mesh:16x16')" in caught.value.remedy


def test_only_a_proof_needs_no_machine() -> None:
    cw.verify(PLAN.schedule)
    for read in (cw.ideal, cw.simulate):
        with pytest.raises(InvalidArgument, match="the machine is None"):
            read(PLAN.schedule, None)  # type: ignore[arg-type]
