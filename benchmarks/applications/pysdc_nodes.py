"""pySDC: van der Pol's oscillator by an implicit collocation method, a node on each rank."""

from mpi4py import MPI
from pySDC.implementations.controller_classes.controller_nonMPI import controller_nonMPI
from pySDC.implementations.problem_classes.Van_der_Pol_implicit import vanderpol
from pySDC.implementations.sweeper_classes.generic_implicit_MPI import generic_implicit_MPI

comm = MPI.COMM_WORLD
description = {
    "problem_class": vanderpol,
    "problem_params": {"mu": 5.0, "u0": (2.0, 0.0), "newton_tol": 1e-12, "newton_maxiter": 99},
    "sweeper_class": generic_implicit_MPI,
    "sweeper_params": {
        "quad_type": "RADAU-RIGHT",
        "num_nodes": comm.size,
        "QI": "IEpar",
        "comm": comm,
    },
    "level_params": {"dt": 0.05, "restol": 1e-10},
    "step_params": {"maxiter": 60},
}
controller = controller_nonMPI(
    num_procs=1, controller_params={"logger_level": 40}, description=description
)
start = controller.MS[0].levels[0].prob.u_exact(0.0)
end, _ = controller.run(u0=start, t0=0.0, Tend=0.5)
if comm.rank == 0:
    print("pySDC:", *(f"{value:.12g}" for value in end))
