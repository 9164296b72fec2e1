"""Quotes, notes and outbox."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "quotes",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("reference", sa.String(11), nullable=False),
        sa.Column("form_id", sa.String(32), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("language", sa.String(2), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("email", sa.String(254), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("company", sa.String(200), nullable=False),
        sa.Column("phone", sa.String(50), nullable=False),
        sa.Column("country", sa.String(100), nullable=False),
        sa.Column("quantity", sa.Integer()),
        sa.Column("wished_date", sa.String(60), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("start_log", sa.Text(), nullable=False),
        sa.Column("notice_version", sa.String(20), nullable=False),
        sa.Column("marketing_at", moment),
        sa.Column("marketing_version", sa.String(20)),
        sa.Column("answers", sa.JSON(), nullable=False),
        sa.Column("permalink", sa.Text()),
        sa.Column("data_version", sa.String(40), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_quotes"),
        sa.UniqueConstraint("reference", name="uq_quotes_reference"),
        sa.UniqueConstraint("form_id", name="uq_quotes_form_id"),
    )
    op.create_index("ix_quotes_created_at", "quotes", ["created_at"])
    op.create_table(
        "notes",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("quote_id", sa.String(32), nullable=False),
        sa.Column("written_at", moment, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notes"),
        sa.ForeignKeyConstraint(
            ["quote_id"], ["quotes.id"], name="fk_notes_quote_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_notes_quote_id", "notes", ["quote_id"])
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("quote_id", sa.String(32), nullable=False),
        sa.Column("reference", sa.String(11), nullable=False),
        sa.Column("channel", sa.String(16), nullable=False),
        sa.Column("event", sa.String(16), nullable=False),
        sa.Column("idempotency_key", sa.String(32), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", moment),
        sa.Column("leased_by", sa.String(32)),
        sa.Column("leased_until", moment),
        sa.Column("delivered_at", moment),
        sa.Column("dead_at", moment),
        sa.Column("last_error", sa.String(60)),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
        sa.UniqueConstraint("idempotency_key", name="uq_outbox_idempotency_key"),
    )
    op.create_index("ix_outbox_quote_id", "outbox", ["quote_id"])
    op.create_index("ix_outbox_due", "outbox", ["channel", "next_attempt_at"])
