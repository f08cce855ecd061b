"""Approval: what a call is held to be, what the policy says about it, and which grants cover it."""
