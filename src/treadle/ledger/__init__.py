"""Stores of executions: adapters of the port `treadle.ports.ledger`, one for SQLite files and one for memory."""
