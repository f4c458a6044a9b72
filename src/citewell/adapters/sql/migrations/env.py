"""What Alembic runs first: it works on the connection, and in the transaction, that `schema.py` gives it."""

from alembic import context

from citewell.adapters.sql.tables import tables

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=tables,
    version_table=context.config.attributes["version_table"],
)
with context.begin_transaction():
    context.run_migrations()
