"""Adapters that carry one message to one recipient. They know neither the store nor the worker nor the API."""
