"""The optional extensions; without a compiler, Python runs plans, plays schedules, carries packets.

Everything else about the build is in `pyproject.toml`.  They keep to CPython's limited API, so one
wheel serves all versions of Python on a platform.
"""

from pathlib import Path

from setuptools import Extension, setup

ENGINE = Path("src/collwise/mpi/engine")

setup(
    ext_modules=[
        Extension(
            "collwise.mpi.engine._engine",
            sorted(str(path) for path in ENGINE.glob("*/*.c")),
            depends=sorted(str(path) for path in ENGINE.glob("*/*.h")),
            extra_compile_args=["-std=c11", "-O3"],
            extra_link_args=["-pthread"],
            libraries=["dl"],
            py_limited_api=True,
            optional=True,
        ),
        *(
            Extension(
                f"collwise.{room}.{name}",
                [f"src/collwise/{room}/{name}.c"],
                extra_compile_args=["-std=c11", "-O3"],
                py_limited_api=True,
                optional=True,
            )
            for room, name in (
                ("schedule", "_dependencies"),
                ("timing", "_event_loop"),
                ("lab", "_carrier"),
            )
        ),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
