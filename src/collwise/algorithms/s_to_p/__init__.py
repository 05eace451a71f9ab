"""S-to-p broadcasts: some ranks have data, all get everybody's."""
