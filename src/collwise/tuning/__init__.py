"""The main job: measure, plan, race against the library's own, learn, report.

It brings the sans-IO rooms (measure, planner, verifier) together with MPI.
"""
