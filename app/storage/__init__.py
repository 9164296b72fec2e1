"""The database of the quote requests: SQLite by default, PostgreSQL by address."""
