NBYTES = 2048
"""Of the messages whose t0 and λ are measured."""
STREAMED, PIECE = 24, 65536
"""Messages in the stream, and bytes of each."""
