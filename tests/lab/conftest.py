import platform

import pytest

from collwise.lab.requirements import requirements


@pytest.fixture(scope="session")
def allowed() -> None:
    """Skips where this machine cannot emulate hosts."""
    missing = [f"{one.what} ({one.seen})" for one in requirements() if one.needed and not one.met]
    if missing:
        pytest.skip(f"no emulated hosts on this {platform.system()} machine: needs {missing[0]}")
