"""What goes over the wire: one schema file per door, for the server that answers and the client that asks.

Knows no FastAPI and no engine. Field names are those of the contract, whatever case they have.
"""
