"""The workspace seen as files: the path fence, ignore rules, text encodings, safe opening and writing, and
limits.

Nothing here knows tools, approval or the session; it answers questions about paths and bytes.
"""
