"""The drop-in communicator: it decides by plans and races, and hands the rest to the library."""

from collwise.comm.communicator import Comm

__all__ = ["Comm"]
