"""One module a server: how it is started, when it is ready, and which users, buckets and databases it has."""
