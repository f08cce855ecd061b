"""HTTP, server-sent events, JSON lines and error classes that the protocol adapters share.

The only package that imports httpx. It knows no provider's request or response shapes.
"""
