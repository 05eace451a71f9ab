"""Ranks with hostnames and /dev/shm of their own: several nodes on a real network, no lab."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.mpi.launching import LIMIT_S, Library

_OWN = 'hostname "node$0" && mount -t tmpfs none /dev/shm && exec "$@"'
_NODE = ["unshare", "--uts", "--mount", "sh", "-c", _OWN]
_BY_NETWORK = {
    "MPIR_CVAR_NOLOCAL": "1",
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "OMPI_MCA_pml": "ob1",
}
_PROGRAM = """
import json, os
from mpi4py import MPI
import collwise as cw
from msgspec import structs
from collwise.comm import agreed_decision
from collwise.mpi.runtime.world import describe
from collwise.profiles.store import default_path
from tests.mpi.programs.checks import logged
from tests.profiles.example import example

comm, told = MPI.COMM_WORLD, []
several, alone = describe(comm).fingerprint(), describe(MPI.COMM_SELF).fingerprint()
told.append([several.layout, alone.layout, bool(several.network), bool(alone.network)])
for here, saved in ((several, alone), (alone, several)):
    if comm.rank == 0:
        path = default_path(saved)
        structs.replace(example(), fingerprint=saved).save(path)
    comm.Barrier()
    with logged() as lines:
        for ranks in (comm, MPI.COMM_SELF):
            cw.Comm(ranks).Free()
        found = agreed_decision._elsewhere(here, saved.layout)
    told.append([lines, found is not None and found.fingerprint == saved])
    comm.Barrier()
    if comm.rank == 0:
        path.unlink()
    comm.Barrier()
every = comm.gather(told)
if comm.rank == 0:
    print(json.dumps(every))
"""


@pytest.mark.mpi
def test_profiles_of_one_node_and_of_several(mpi: Library, tmp_path: Path) -> None:
    """Neither was found from the other, and a warning named a file that was not there."""
    tried = [*_NODE, "0", "true"]
    if shutil.which("unshare") is None or subprocess.run(tried, check=False, timeout=20).returncode:
        pytest.skip("namespaces need a right that these tests have not got")
    (tmp_path / "program.py").write_text(_PROGRAM)
    start = 'rank=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; unshare --uts --mount sh -c "$0" $rank "$@"'
    program = [str(mpi.python), str(tmp_path / "program.py")]
    words = [*mpi.command(2)[:-1], "sh", "-c", start, _OWN, *program]
    root = Path(__file__).resolve().parents[2]
    about = mpi.environment(XDG_DATA_HOME=str(tmp_path), PYTHONPATH=str(root), **_BY_NETWORK)
    ran = subprocess.run(
        words, env=about, cwd=root, capture_output=True, text=True,
        timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    every: list[Any] = json.loads(ran.stdout)
    for layouts, *found in every:
        assert layouts == ["several nodes", "one node", True, False]
        assert found == [[[], True], [[], True]]
