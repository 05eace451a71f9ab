"""mpi-sppy: the farmer's stochastic program by progressive hedging, scenarios over all ranks."""

from mpi4py import MPI
from mpisppy.opt.ph import PH
from mpisppy.tests.examples import farmer

SCENARIOS = 6
options = {
    "solver_name": "appsi_highs",
    "PHIterLimit": 12,
    "defaultPHrho": 1.0,
    "convthresh": 1e-9,
    "verbose": False,
    "display_timing": False,
    "display_progress": False,
    "iter0_solver_options": {},
    "iterk_solver_options": {},
    "linearize_proximal_terms": True,
    "proximal_linearization_tolerance": 1e-6,
}
opt = PH(
    options,
    [f"scen{n}" for n in range(SCENARIOS)],
    farmer.scenario_creator,
    farmer.scenario_denouement,
    scenario_creator_kwargs={"num_scens": SCENARIOS},
)
convergence, objective, bound = opt.ph_main()
if MPI.COMM_WORLD.rank == 0:
    print(f"mpi-sppy: {convergence:.6g} {objective:.6f} {bound:.6f}")
