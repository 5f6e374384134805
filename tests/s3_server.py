"""Which S3 server the service tests run on: `LAKEHOUSE_TEST_S3` is `minio` (the default) or `seaweedfs`."""

from __future__ import annotations

import os

S3 = os.environ.get("LAKEHOUSE_TEST_S3", "minio")
