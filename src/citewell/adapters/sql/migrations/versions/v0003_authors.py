"""What authors want to know: questions without an answer, how ingests went, the last evaluation.

The votes of readers are added by the next step, which knows what to do if another program made the table.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"

_MOMENT = sa.DateTime(timezone=True)
_JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "gaps",
        sa.Column("project_id", sa.Uuid, primary_key=True),
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("times", sa.Integer, nullable=False),
        sa.Column("first_at", _MOMENT, nullable=False),
        sa.Column("last_at", _MOMENT, nullable=False),
    )
    op.create_index("idx_gaps_last", "gaps", ["project_id", "last_at"])
    op.create_table(
        "ingests",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("project_id", sa.Uuid, nullable=False, index=True),
        sa.Column("started_at", _MOMENT, nullable=False),
        sa.Column("updated_at", _MOMENT, nullable=False),
        sa.Column("finished_at", _MOMENT),
        sa.Column("stage", sa.String, nullable=False),
        sa.Column("done", sa.Integer, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("errors", _JSON, nullable=False),
        sa.Column("files_processed", sa.Integer, nullable=False),
        sa.Column("chunks_created", sa.Integer, nullable=False),
        sa.Column("outcome", sa.String, nullable=False),
    )
    op.create_table(
        "evaluations",
        sa.Column("project_id", sa.Uuid, primary_key=True),
        sa.Column("at", _MOMENT, nullable=False),
        sa.Column("questions", sa.Integer, nullable=False),
        sa.Column("scores", _JSON, nullable=False),
    )
