import pytest

from collwise.lab import requirements


@pytest.fixture(scope="session")
def allowed() -> None:
    """Skips where this machine cannot emulate hosts."""
    missing = [f"{one.what} ({one.problem})" for one in requirements.unmet() if one.needed]
    if missing:
        pytest.skip(f"no emulated hosts on this machine: needs {missing[0]}")
