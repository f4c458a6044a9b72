"""How good are the answers? Golden questions in, scores out. Asks through the same flow as any reader."""
