"""ASE: the barrier of a gold atom that hops on aluminium, an image of the band on each rank."""

from ase.build import add_adsorbate, fcc100
from ase.calculators.emt import EMT
from ase.constraints import FixAtoms
from ase.mep import NEB
from ase.optimize import BFGS
from ase.parallel import world

initial = fcc100("Al", size=(2, 2, 3))
add_adsorbate(initial, "Au", 1.7, "hollow")
initial.center(axis=2, vacuum=4.0)
initial.set_constraint(FixAtoms(mask=[atom.tag > 1 for atom in initial]))
final = initial.copy()
final[-1].x += final.get_cell()[0, 0] / 2
for ends in (initial, final):
    ends.calc = EMT()
    BFGS(ends, logfile=None).run(fmax=0.05)
images = [initial, *(initial.copy() for _ in range(world.size)), final]
band = NEB(images, parallel=True, method="improvedtangent")
for index, image in enumerate(images[1:-1]):
    if index == world.rank:
        image.calc = EMT()
band.interpolate()
optimizer = BFGS(band, logfile=None)
optimizer.run(fmax=0.05, steps=40)
if world.rank == 0:
    energies = band.energies
    print("ASE:", optimizer.nsteps, *(f"{value:.9f}" for value in energies - energies[0]))
