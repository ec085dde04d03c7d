"""Executions on Temporal: it says where one goes on, wakes it, and notices dead workers; the ledger decides everything else."""
