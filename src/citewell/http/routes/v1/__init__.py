"""The endpoints under `/api/v1`."""
