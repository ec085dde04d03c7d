"""The studio's service: reads and steers executions through the ledger, and sends what happens to those who watch."""
