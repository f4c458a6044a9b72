"""The endpoints, one file for each URL; those under `/api/v1` are in `v1/`."""
