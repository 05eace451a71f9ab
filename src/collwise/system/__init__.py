"""The machine under us and how we speak of it: launcher, host, files, numbers as text."""
