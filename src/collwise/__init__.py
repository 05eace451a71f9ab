"""collwise: measure the machine, plan the collective, run it on MPI.  (Filled in below.)"""
