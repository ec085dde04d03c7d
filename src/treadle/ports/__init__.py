"""What Treadle needs of the world, as abstract classes whose docstrings are contracts.

Adapters implement them; only `app` names adapters.
"""
