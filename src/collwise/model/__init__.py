"""Numbers only: machines, the postal model, profiles, lower bounds."""
