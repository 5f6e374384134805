"""Parsed pages become clean rows, rejects and outcomes; clean rows become features.

Belongs here: pure functions of parsed pages and declared rules; the same pages in any order give the same rows. Not
here: parsing, tables, clients of any server.
"""

from lakehouse.clean.chain import FetchedPage, clean_day
from lakehouse.clean.features import article_features, articles_current, source_daily

__all__ = ["FetchedPage", "article_features", "articles_current", "clean_day", "source_daily"]
