"""The whole paper again: every figure and table, and how each claim fares.

It uses the public names of simplexplore only, and is run from the repository: `make reproduce`.
"""
