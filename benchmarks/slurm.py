"""Slurm on this machine: a command beside it, or a record of what collwise does under it.

    python benchmarks/slurm.py                                  # writes slurm-LIBRARY-DATE.md
    python benchmarks/slurm.py --nodes 1 -- srun -n 2 --mpi=pmi2 collwise tune --budget 5

Needs root, and Slurm, munge and iproute2 (Debian: slurm-wlm; libpmix-dev for --mpi=pmix).  Every
node is a slurmd with a host name, a network and a /dev/shm of its own.  The command runs beside
them, as on a login node; all daemons end with it.  The library is the one of this interpreter.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench_support import RESULTS, number, table_head, table_row, today

from collwise.mpi.runtime.world import library_line
from collwise.system.launcher import ended_by_signals, find_mpiexec, is_open_mpi

START_S, STEP_S = 30.0, 200.0
"""Seconds for Slurm to start, and for a step of the record."""
BRIDGE, RANGE = "collwise-slurm", "10.77.9"
_CONFIGURATION = """
ClusterName=collwise
SlurmctldHost=login({range}.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={folder}/munge.socket
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
SlurmdParameters=config_overrides
KillWait=10
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=FORCE State=UP
"""
_NODE = "NodeName={name} NodeAddr={address} CPUs=4 State=UNKNOWN"
_HOST = """
hostname {name}
mount --make-rprivate /
mount -t tmpfs none /dev/shm
mount --bind {folder}/hosts /etc/hosts
exec {daemon} -f {folder}/slurm.conf -D
"""


class Step(NamedTuple):
    """What is done, by which commands of a shell, and what they must print.

    job: the batch script that the commands submit.
    """

    what: str
    command: str
    seen: str
    job: str = ""


_PROGRAM = """
import os
from mpi4py import MPI
MPI.COMM_WORLD.Bcast(bytearray(999))
os.write(1, f"{MPI.COMM_WORLD.size} {MPI.Get_processor_name()}\\n".encode())
"""
_TUNE = "collwise tune --collective broadcast,allreduce --bytes 64,512 --budget 6"
_BATCH = "sbatch -W -N 2 -n 4 -o job.out job.sh; cat job.out"
_ENDED = (
    "sbatch -J ended -N 2 -n 4 -o job.out job.sh;"
    " until grep -q speedup_low profile.json || test -z $(squeue -hn ended -o%i); do sleep 1; done;"
    " scancel -n ended; sleep 8; cat job.out; grep -c speedup_low profile.json"
)
_SAVED = r"ended by (a signal|SIGTERM); t0, λ and [1-9]\d* results? of races are saved"
STEPS = [
    Step("srun without --mpi", "srun -n 2 collwise measure", "started by srun: .*`srun {mpi}`"),
    Step("srun, one node", "srun -n 2 {mpi} " + _TUNE, "^profile "),
    Step("srun, two nodes", "srun -N 2 -n 4 {mpi} " + _TUNE, "^profile "),
    Step(
        "the summary of a program, two nodes",
        "srun -N 2 -n 4 {mpi} collwise run --summary program.py",
        "srun {mpi} -n 4 collwise tune --from-summary",
    ),
    Step("tune -n under srun -n 1", f"srun -n 1 {_TUNE} -n 2", "^profile "),
    Step("run -n under srun -n 1", "srun -n 1 collwise run -n 2 program.py", r"(2 n1\s*){{2}}"),
    Step("a lab by each task", "srun -n 2 collwise lab -- hostname", "a lab: srun has started"),
    Step("doctor in a step", "srun -n 1 collwise doctor", r"ok\W+MPI library"),
    Step("batch on two nodes, run -n 4", _BATCH, r"(4 n1\s*){{4}}", "collwise run -n 4 program.py"),
    Step("batch on two nodes, mpiexec", _BATCH, "^profile ", f"mpiexec -n 4 {_TUNE}"),
    Step(
        "batch on two nodes, a lab", _BATCH, "h0\nh1|h1\nh0", "collwise lab --hosts 2 -- hostname"
    ),
    Step("scancel, tune by srun", _ENDED, _SAVED, "srun {mpi} collwise tune --budget 30"),
    Step("scancel, tune -n 2", _ENDED, _SAVED, "collwise tune -n 2 --budget 30"),
    Step("scancel, by mpiexec", _ENDED, r"^ *[1-9]\d*$", "mpiexec -n 4 collwise tune --budget 30"),
    Step(
        "a time limit of a minute",
        "sbatch -W -t 1 -N 2 -n 4 -o job.out job.sh; cat job.out",
        _SAVED,
        "srun {mpi} collwise tune --budget 100",
    ),
]


@contextmanager
def slurm(nodes: int) -> Iterator[Path]:
    """A context in which Slurm runs with so many nodes, n1, n2, …: the path of its slurm.conf."""
    addresses = {f"n{number}": f"{RANGE}.{10 + number}" for number in range(1, nodes + 1)}
    with TemporaryDirectory(prefix="slurm-") as name, ExitStack() as stack:
        folder = Path(name)
        lines = [_NODE.format(name=one, address=ip) for one, ip in addresses.items()]
        written = _CONFIGURATION.format(folder=folder, range=RANGE, nodes="\n".join(lines))
        (folder / "slurm.conf").write_text(written)
        (folder / "mpi.conf").write_text("PMIxCliTmpDirBase=/dev/shm\n")  # a node's own
        hosts = {"localhost": "127.0.0.1", "login": f"{RANGE}.1", **addresses}
        (folder / "hosts").write_text("".join(f"{ip} {one}\n" for one, ip in hosts.items()))
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o400)
        for one in ("state", *addresses):
            (folder / one).mkdir()
        _do(f"ip link add {BRIDGE} type bridge")
        stack.callback(_do, f"ip link del {BRIDGE}")
        _do(f"ip addr add {RANGE}.1/24 dev {BRIDGE}", f"ip link set {BRIDGE} up")
        munged = f"munged -F --force --key-file {folder}/munge.key --socket {folder}/munge.socket"
        files = [f"--{kind}-file={folder}/munge.{kind}" for kind in ("log", "pid", "seed")]
        _daemon(stack, [*munged.split(), *files])
        within = ["unshare", "--uts", "--mount", "sh", "-ec"]
        login = _HOST.format(name="login", folder=folder, daemon="slurmctld")
        _daemon(stack, [*within, login])
        for one, address in addresses.items():
            _do(f"ip netns add {one}")
            stack.callback(_do, f"ip netns del {one}")
            _do(
                f"ip link add v-{one} type veth peer name eth0 netns {one}",
                f"ip link set v-{one} master {BRIDGE} up",
                f"ip -n {one} addr add {address}/24 dev eth0",
                f"ip -n {one} link set eth0 up",
                f"ip -n {one} link set lo up",
            )
            host = _HOST.format(name=one, folder=folder, daemon=f"slurmd -N {one}")
            _daemon(stack, ["nsenter", f"--net=/run/netns/{one}", *within, host])
        conf = folder / "slurm.conf"
        deadline = time.monotonic() + START_S
        asked = ["sinfo", "--noheader", "--format=%t %D"]
        while _output(asked, SLURM_CONF=str(conf)).split() != ["idle", str(nodes)]:
            if time.monotonic() > deadline:
                logs = "".join(log.read_text()[-2000:] for log in folder.glob("*.log"))
                raise SystemExit(f"Slurm did not start within {START_S:.0f} s:\n{logs}")
            time.sleep(0.2)
        try:
            yield conf
        finally:
            _output(["scancel", "--user=root"], SLURM_CONF=str(conf))
            while _output(["squeue", "--noheader"], SLURM_CONF=str(conf)):
                time.sleep(0.2)  # KillWait ends it


def _daemon(stack: ExitStack, command: list[str]) -> None:
    """Start a daemon that ends with the context."""
    null = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=null, stdout=null, stderr=null)

    def end() -> None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()

    stack.callback(end)


def _do(*commands: str) -> None:
    for command in commands:
        subprocess.run(command.split(), check=True, timeout=START_S)


def _output(command: list[str], folder: Path | None = None, **variables: str) -> str:
    """What a command prints, on both streams."""
    ran = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=STEP_S,
        check=False,
    )
    return ran.stdout


def record(conf: Path, out: Path) -> str:
    """Take all steps, and write the record; what the steps printed that failed."""
    openmpi = is_open_mpi(find_mpiexec())
    mpi = "--mpi=pmix" if openmpi else "--mpi=pmi2"
    variables = {"SLURM_CONF": str(conf), "OMPI_ALLOW_RUN_AS_ROOT": "1"}
    variables |= {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "MPIR_CVAR_CH4_ROOTS_ONLY_PMI": "1"}
    variables["PRTE_MCA_hwloc_default_binding_policy"] = "none"  # Slurm is told of more cores
    rows, failed = [], []
    for step in STEPS:
        with TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "program.py").write_text(_PROGRAM)
            (folder / "job.sh").write_text(f"#!/bin/bash\n{step.job.format(mpi=mpi)}\n")
            if "program.py" not in step.command + step.job:
                variables["COLLWISE_PROFILE"] = f"{folder}/profile.json"
            said = _output(["bash", "-c", step.command.format(mpi=mpi)], folder, **variables)
        variables.pop("COLLWISE_PROFILE", None)
        found = re.search(step.seen.format(mpi=mpi), said, re.MULTILINE)
        shown = " ".join(found[0].split()) if found else "**something else**"
        done = step.job.format(mpi=mpi) or step.command.format(mpi=mpi)
        rows.append([step.what, f"`{done}`", shown])
        print(table_row(rows[-1]), flush=True)
        if not found:
            failed.append(f"{step.what}:\n{said}")
    version = _output(["sinfo", "--version"], SLURM_CONF=str(conf)).split()[-1]
    text = f"""# collwise under Slurm {version}: {library_line()}, {today()}

Made by `benchmarks/slurm.py`: two nodes on one machine, each a slurmd with a host name, a network
and a /dev/shm of its own.  A number alone is that of the results which are in the profile.

"""
    text += "\n".join([table_head(["what", "command or script", "seen"]), *map(table_row, rows)])
    kind = "openmpi" if openmpi else "mpich"
    (out / f"slurm-{kind}-{today()}.md").write_text(text + "\n")
    return "\n".join(failed)


def main() -> None:
    """Run the command beside Slurm, or write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=number(int), default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    for program in ("slurmctld", "slurmd", "munged", "ip"):
        if shutil.which(program) is None:
            raise SystemExit(f"there is no {program} here (Debian: apt-get install slurm-wlm)")
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with ended_by_signals(), slurm(options.nodes) as conf:
        if not options.command:
            raise SystemExit(record(conf, options.out) or 0)
        variables = {**os.environ, "SLURM_CONF": str(conf)}
        raise SystemExit(subprocess.run(options.command, env=variables, check=False).returncode)


if __name__ == "__main__":
    main()
