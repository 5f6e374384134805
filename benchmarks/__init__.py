"""One file a benchmark; each prints ours and a peer's figure from the same run as one JSON object."""
