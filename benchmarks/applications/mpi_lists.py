"""mpi-list: a list of a thousand numbers over all ranks, mapped, filtered, counted and reduced."""

from operator import add

from mpi_list import Context

context = Context()
numbers = context.iterates(1000)
squares = numbers.map(lambda n: n * n).filter(lambda n: n % 3 == 1)
told = squares.len(), squares.reduce(add, 0)
every = squares.collect()
if context.rank == 0:
    print("mpi-list:", *told, sum(every))
