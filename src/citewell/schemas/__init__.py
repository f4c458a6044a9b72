"""Requests and responses of the HTTP API, one file for each endpoint, shared by server and client.

Knows no FastAPI and no engine. Field names are those of the contract, whatever case they have.
"""
