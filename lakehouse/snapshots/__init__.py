"""Page bodies and batches in an object store, and the spool they wait in.

Belongs here: keys, compression, the stores, and the order in which things become durable. Not here: what a body
means, and who asks for it.
"""
