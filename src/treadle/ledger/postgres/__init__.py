"""The ledger on Postgres, for loops of many machines: the same contract, liveness by the server's time, requests announced by NOTIFY."""

from .lessons import PostgresLessons
from .store import PostgresLedger, open_postgres

__all__ = ["PostgresLedger", "PostgresLessons", "open_postgres"]
