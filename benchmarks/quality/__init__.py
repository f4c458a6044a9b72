"""Scripts that measure how good retrieval, answers and citations are."""
