"""What a schedule is, how it is built, and what it takes in ideal time."""
