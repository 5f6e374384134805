"""Crawl lakehouse: collect pages from many sources into Apache Iceberg, and trust, query, repair and replay them."""

__version__ = "0.1.0"
