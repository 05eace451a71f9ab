"""S-to-p broadcasts (allgatherv): s ranks have data; in the end all p ranks have all of it."""
