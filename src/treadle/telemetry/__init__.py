"""Progress for people and programs: the bus, sinks, lines worth reading, the live view. Adapters of the observer port."""
