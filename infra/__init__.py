"""The servers of the `server` profile: installed and run as processes, or in containers where there is an engine.

What belongs here: versions, settings, users and policies of PostgreSQL, MinIO and Trino, and the local demo site.
What does not: anything that reads or writes the lake.
"""
