"""What an agent is given to know besides its task: skills it may load, and rules that hold where it works."""
