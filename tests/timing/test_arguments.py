"""What is simulated or proved has to be a schedule, on a machine, on a topology."""

from collections.abc import Callable
from typing import Any

import pytest

import collwise as cw
from collwise.errors import InvalidArgument
from collwise.model.topology import Mesh

MACHINE = cw.Machine.hockney(alpha_s=1, beta_s=1)
PLAN = cw.plan("broadcast", ranks=8, nbytes=8, machine=MACHINE)
PRESET = cw.presets["paragon"]
READERS: list[Callable[..., Any]] = [cw.ideal, cw.simulate, cw.verify]


RIGHT = {"schedule": PLAN.schedule, "machine": PRESET.machine, "topology": Mesh(2, 4)}
REMEDIES = {
    "schedule": "give a collwise.Schedule, such as plan.schedule",
    "machine": "collwise.presets[name].machine",
    "topology": "topology.parse('mesh:16x16')",
}


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("name", "odd", "seen"),
    [
        ("schedule", None, "the schedule is None"),
        ("schedule", PLAN, "the schedule is a Plan"),
        ("schedule", "chain", "the schedule is 'chain'"),
        ("schedule", cw.Schedule, "the schedule is a type"),
        ("machine", "paragon", "the machine is 'paragon'"),
        ("machine", PRESET, "the machine is a Preset"),
        ("machine", cw.Machine, "the machine is a type"),
        ("machine", 3, "the machine is 3"),
        *(("topology", odd, f"topology = {odd!r}") for odd in ("mesh:2x4", (2, 4), 8, Mesh)),
    ],
)
def test_what_is_none(read: Callable[..., Any], name: str, odd: Any, seen: str) -> None:
    read(*RIGHT.values())
    with pytest.raises(InvalidArgument) as caught:
        read(*{**RIGHT, name: odd}.values())
    assert caught.value.seen == seen
    assert REMEDIES[name] in caught.value.remedy


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("law", [None, "quantum"])
def test_a_machine_whose_law_nobody_knows(read: Callable[..., Any], law: Any) -> None:
    own = type("Own", (type(MACHINE),), {"law": law})(1, 1, 0)
    with pytest.raises(InvalidArgument) as caught:
        read(PLAN.schedule, own)
    assert caught.value.seen == f"the machine's law is {law!r}"
    with pytest.raises(InvalidArgument, match="the machine's law is"):
        cw.plan("broadcast", ranks=8, nbytes=8, machine=own)


def test_only_a_proof_needs_no_machine() -> None:
    cw.verify(PLAN.schedule)
    for read in (cw.ideal, cw.simulate):
        with pytest.raises(InvalidArgument, match="the machine is None"):
            read(PLAN.schedule, None)  # type: ignore[arg-type]
