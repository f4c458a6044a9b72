"""Sessions and conversations of another program: they get our columns, and rows need only those of the contract.

Runs again where the other program has made its tables anew.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_DEFAULT_PROJECT = sa.text("'2369c4566c495e11841843a18a4fa2d6'")


def upgrade() -> None:
    _add_columns(
        "sessions",
        sa.Column("project_id", sa.Uuid, nullable=False, server_default=_DEFAULT_PROJECT),
        sa.Column("owner", sa.String, nullable=False, server_default=sa.text("''")),
    )
    _add_columns(
        "conversations",
        sa.Column("complete", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("once", sa.String(64)),
        sa.Column("feedback", sa.String),
    )
    with op.batch_alter_table("sessions") as table:
        table.alter_column("project_id", existing_type=sa.Uuid, server_default=_DEFAULT_PROJECT)
    with op.batch_alter_table("conversations") as table:
        table.alter_column("complete", existing_type=sa.Boolean, server_default=sa.true())
    _make_unique("sessions", "session_id")
    _make_unique("conversations", "once")
    op.create_index("ix_conversations_feedback", "conversations", ["feedback"], if_not_exists=True)


def _add_columns(table: str, *columns: "sa.Column[object]") -> None:
    existing = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)}
    for column in columns:
        if column.name not in existing:
            op.add_column(table, column)


def _make_unique(table: str, column: str) -> None:
    inspector = sa.inspect(op.get_bind())
    unique = [
        inspector.get_pk_constraint(table)["constrained_columns"],
        *(constraint["column_names"] for constraint in inspector.get_unique_constraints(table)),
        *(index["column_names"] for index in inspector.get_indexes(table) if index["unique"]),
    ]
    if [column] not in unique:
        op.create_unique_constraint(f"{table}_{column}_key", table, [column])
