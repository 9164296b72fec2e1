"""The one failure of a database that callers handle. Here, so that naming it imports no driver."""


class StorageUnavailableError(Exception):
    """The database does not answer; nothing was stored."""
