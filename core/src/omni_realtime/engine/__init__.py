"""The engine port and its adapters; importing this package imports no engine."""
