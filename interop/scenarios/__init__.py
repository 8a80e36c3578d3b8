"""Scenarios: things that every client must be able to do. A scenario is a function of the world and one
client; its docstring is its name.
"""
