"""What is here, what is wrong, and how to mend it."""
