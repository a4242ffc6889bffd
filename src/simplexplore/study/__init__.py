"""Durable runs: events, state, store, asking, telling, status."""
