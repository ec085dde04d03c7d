"""Progress for people: lines worth reading, and the live view. Adapters of the observer port."""
