"""A small web site that is fun to crawl and nasty on purpose: deterministic, invented, in Chinese and English.

`python -m infra.demo_site` serves it to people; tests use `run_site` and judge what was collected by `answers`.
"""

from infra.demo_site.answers import Answer, Truth, answers
from infra.demo_site.server import SiteServer, run_site
from infra.demo_site.site import Site

__all__ = ["Answer", "Site", "SiteServer", "Truth", "answers", "run_site"]
