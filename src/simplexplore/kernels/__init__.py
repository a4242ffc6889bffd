"""Compiled code: arrays in, status codes out; no allocation, no exceptions, no objects."""
