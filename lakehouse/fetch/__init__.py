"""Collecting: due tasks, polite exchanges with sites, entries of list pages, and the collector that drives them.

Belongs here: everything that touches a site. Not here: what a page means (`parse/`), and any table.
"""
