"""How the tables of each version became those of the next, for Alembic. Steps that were released are never edited."""
