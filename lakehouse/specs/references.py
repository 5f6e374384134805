"""What declared files say of each other: every name and version they refer to must exist and fit.

Names are read from the documents, not the models, so that a file with another problem is judged too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from lakehouse.errors import Problem
from lakehouse.specs.base import Declared, near_names, split_ref
from lakehouse.specs.checks import ChecksSpec
from lakehouse.specs.documents import Document
from lakehouse.specs.layout import CHECKS, SCHEMAS, SOURCES, TEMPLATES, DeclaredFile
from lakehouse.specs.schema import SchemaSpec
from lakehouse.specs.source import SourceSpec
from lakehouse.specs.template import TemplateSpec

REF = re.compile(r"[a-z][a-z0-9_]{0,63}@[1-9][0-9]{0,5}")
Found = Iterator[tuple[tuple[str | int, ...], str, str]]


def judge_references(
    read: Mapping[DeclaredFile, Document], specs: Mapping[DeclaredFile, Declared], declared: list[DeclaredFile]
) -> list[Problem]:
    """Problems of references between files; `declared` are all files, also those that could not be read."""
    names = _Names(declared, specs)
    problems = []
    for file, document in read.items():
        if file.folder == SOURCES:
            problems += [document.problem(*found) for found in _judge_source(document, names)]
        elif file.folder == TEMPLATES:
            problems += [document.problem(*found) for found in _judge_template(document, names)]
    return problems


class _Names:
    """Everything that can be referred to; a file with problems counts as there, but has no spec."""

    def __init__(self, declared: list[DeclaredFile], specs: Mapping[DeclaredFile, Declared]) -> None:
        self.versions: dict[str, dict[str, list[int]]] = {TEMPLATES: {}, SCHEMAS: {}, CHECKS: {}, SOURCES: {}}
        for file in declared:
            self.versions[file.folder].setdefault(file.name, []).append(file.version)
        self.specs = {(file.folder, file.name, file.version): spec for file, spec in specs.items()}

    def schema(self, ref: str) -> SchemaSpec | None:
        spec = self.specs.get((SCHEMAS, *split_ref(ref)))
        return spec if isinstance(spec, SchemaSpec) else None

    def template(self, ref: str) -> TemplateSpec | None:
        spec = self.specs.get((TEMPLATES, *split_ref(ref)))
        return spec if isinstance(spec, TemplateSpec) else None

    def checks(self, name: str) -> ChecksSpec | None:
        spec = self.specs.get((CHECKS, name, 0))
        return spec if isinstance(spec, ChecksSpec) else None

    def schemas(self, dataset: str) -> list[SchemaSpec]:
        found = (self.specs.get((SCHEMAS, dataset, version)) for version in self.versions[SCHEMAS].get(dataset, ()))
        return [spec for spec in found if isinstance(spec, SchemaSpec)]

    def judge_ref(self, key: str, ref: str, folder: str, noun: str) -> Found:
        """Whether `name@version` exists."""
        name, version = split_ref(ref)
        versions = self.versions[folder].get(name)
        if versions is None:
            yield (key,), f"there is no {noun} {name!r}", near_names(name, self.versions[folder], f"{noun}s")
        elif version not in versions:
            shown = ", ".join(f"{name}@{number}" for number in sorted(versions))
            yield (key,), f"{noun} {name!r} has no version {version}", f"it has {shown}"


def _judge_source(document: Document, names: _Names) -> Found:
    defaults = SourceSpec.model_fields
    writes, template, checks = (
        document.data.get(key, defaults[key].default) for key in ("writes", "template", "checks")
    )
    schema = rules = None
    if _is_ref(writes):
        yield from names.judge_ref("writes", writes, SCHEMAS, "dataset")
        schema = names.schema(writes)
        if schema is not None and schema.frame != "record":
            yield ("writes",), f"{writes} holds no records of pages", f"the pipeline itself writes {schema.table}"
    if _is_ref(template):
        yield from names.judge_ref("template", template, TEMPLATES, "template")
        rules = names.template(template)
    known = rules is not None and rules.dataset in names.versions[SCHEMAS]
    if rules is not None and known and _is_ref(writes) and rules.dataset != split_ref(writes)[0]:
        right = f"write a version of {rules.dataset}, or take a template for {split_ref(writes)[0]}"
        yield ("template",), f"{template} gives {rules.dataset}, but the source writes {writes}", right
    if isinstance(checks, str):
        yield from _judge_checks(checks, schema, names)


def _judge_checks(checks: str, schema: SchemaSpec | None, names: _Names) -> Found:
    if checks not in names.versions[CHECKS]:
        right = near_names(checks, names.versions[CHECKS], "lists of checks")
        yield ("checks",), f"there is no list of checks {checks[:64]!r}", right
        return
    spec = names.checks(checks)
    if spec is None or schema is None:
        return
    lacking = sorted({rule.field for rule in spec.rules} - set(schema.columns))
    if lacking:
        wrong = f"checks {checks!r} look at {', '.join(lacking)}, which {schema.dataset}@{schema.version} does not have"
        yield ("checks",), wrong, f"take checks made for {schema.dataset}"


def _judge_template(document: Document, names: _Names) -> Found:
    dataset = document.data.get("dataset", TemplateSpec.model_fields["dataset"].default)
    fields = document.data.get("fields")
    if not isinstance(dataset, str):
        return
    if dataset not in names.versions[SCHEMAS]:
        yield (
            ("dataset",),
            f"there is no dataset {dataset[:64]!r}",
            near_names(dataset, names.versions[SCHEMAS], "datasets"),
        )
        return
    schemas = names.schemas(dataset)
    if len(schemas) < len(names.versions[SCHEMAS][dataset]) or not isinstance(fields, dict):
        return
    known = sorted({field.name for schema in schemas for field in schema.fields})
    for name in fields:
        if name not in known:
            yield (
                ("fields", name),
                f"no version of {dataset} has a field {name[:64]!r}",
                near_names(name, known, "fields"),
            )


def _is_ref(value: object) -> bool:
    return isinstance(value, str) and REF.fullmatch(value) is not None
