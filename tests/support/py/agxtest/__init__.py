"""Shared by the Python tests: programs under test, peers, clients, images, namespaces."""
