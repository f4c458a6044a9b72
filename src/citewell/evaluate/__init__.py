"""Evaluation: asks golden questions through the answer flow, and scores the answers."""
