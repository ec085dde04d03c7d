"""Real workers on a real Postgres server, with a fault every second: what they have paid and changed is held against what they say."""
