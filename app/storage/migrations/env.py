"""How Alembic reaches the database: by the connection that `app.storage.engine` hands over."""

from alembic import context

from app.storage.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=False,
)
# the caller's transaction covers everything, so that a migration is whole or not there
context.run_migrations()
