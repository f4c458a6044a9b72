"""Requests and responses of the endpoints under `/api/v1`."""
