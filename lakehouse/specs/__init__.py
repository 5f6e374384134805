"""What `catalog/` declares, as pydantic models: sources with tasks, templates, schemas, checks and URL rules.

Belongs here: the shape of the YAML files and what can be judged by reading them. Not here: any use of them.
"""
