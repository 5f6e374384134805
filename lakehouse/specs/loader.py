"""All of `catalog/`, read at once: either everything is right, or every problem is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from lakehouse.errors import CatalogError, InvariantError, Problem, UnknownNameError
from lakehouse.specs.base import Declared, near_names
from lakehouse.specs.checks import ChecksSpec, UrlRules
from lakehouse.specs.documents import Document, read_document, read_path
from lakehouse.specs.layout import CHECKS, SCHEMAS, SOURCES, TEMPLATES, URL_RULES, DeclaredFile, find_files
from lakehouse.specs.references import judge_references
from lakehouse.specs.schema import SchemaSpec
from lakehouse.specs.source import SourceSpec
from lakehouse.specs.source_rules import judge_source, twin_entries
from lakehouse.specs.template import TemplateSpec
from lakehouse.specs.validation import build_spec
from lakehouse.specs.versions import judge_versions

Judge = Callable[[TemplateSpec], Iterable[tuple[str, str, str]]]
Spec = TypeVar("Spec", bound=Declared)
Value = TypeVar("Value")
MODELS: Mapping[str, type[Declared]] = {
    SOURCES: SourceSpec,
    TEMPLATES: TemplateSpec,
    SCHEMAS: SchemaSpec,
    CHECKS: ChecksSpec,
}
NAME_KEYS = {SOURCES: "source", TEMPLATES: "template", SCHEMAS: "dataset", CHECKS: "checks"}


@dataclass(frozen=True, slots=True)
class Catalog:
    """All that `catalog/` declares; `templates` by `name@version`, `schemas` by dataset with versions ascending."""

    root: Path
    sources: Mapping[str, SourceSpec]
    templates: Mapping[str, TemplateSpec]
    schemas: Mapping[str, tuple[SchemaSpec, ...]]
    checks: Mapping[str, ChecksSpec]
    url_rules: UrlRules

    def source(self, name: str) -> SourceSpec:
        """The source of that name; raises UnknownNameError that names near ones."""
        return _named(self.sources, name, "source", "sources")

    def template(self, ref: str) -> TemplateSpec:
        """The template `name@version`; raises UnknownNameError that names near ones."""
        name, _, version = ref.partition("@")
        versions = sorted(spec.version for spec in self.templates.values() if spec.template == name)
        if versions and ref not in self.templates:
            raise UnknownNameError(_no_version("template", name, version, versions))
        return _named(self.templates, ref, "template", "templates")

    def schema(self, dataset: str, version: int | None = None) -> SchemaSpec:
        """That version of a dataset's schema, the newest for None; raises UnknownNameError that names near ones."""
        specs = _named(self.schemas, dataset, "dataset", "datasets")
        if version is None:
            return specs[-1]
        for spec in specs:
            if spec.version == version:
                return spec
        raise UnknownNameError(_no_version("dataset", dataset, str(version), [spec.version for spec in specs]))

    def table_schema(self, table: str, version: int | None = None) -> SchemaSpec:
        """The schema of a table such as `clean.articles`, the newest for None; raises UnknownNameError."""
        datasets = {specs[-1].table: dataset for dataset, specs in self.schemas.items()}
        return self.schema(_named(datasets, table, "table", "tables"), version)

    def check_list(self, name: str) -> ChecksSpec:
        """The list of checks of that name; raises UnknownNameError that names near ones."""
        return _named(self.checks, name, "list of checks", "lists of checks")

    def tables(self) -> tuple[str, ...]:
        """Names of all registered tables, sorted."""
        return tuple(sorted(specs[-1].table for specs in self.schemas.values()))


def load_catalog(root: Path, judge: Judge | None = None) -> Catalog:
    """All declared files below `root`; raises CatalogError with every problem found.

    `judge` says what cannot be right in a template as (YAML path, wrong, right); `parse.judge_template` does.
    """
    if not root.is_dir():
        wrong = "does not exist" if not root.exists() else "is not a folder"
        raise CatalogError([Problem(str(root), "", wrong, "run in the project's folder, or set LAKEHOUSE_CATALOG_DIR")])
    reading = _Reading(root)
    try:
        reading.read_all()
    except OSError as error:
        wrong = f"cannot be listed: {error.strerror or error}"
        raise CatalogError(
            [Problem(str(error.filename or root), "", wrong, "make it a folder that you may read")]
        ) from None
    reading.judge_all(judge)
    if reading.problems:
        raise CatalogError(sorted(set(reading.problems), key=_place))
    return reading.catalog()


@dataclass(slots=True)
class _Reading:
    """What was read so far, and what is wrong with it."""

    root: Path
    found: list[DeclaredFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    read: dict[DeclaredFile, Document] = field(default_factory=dict)
    specs: dict[DeclaredFile, Declared] = field(default_factory=dict)
    url_rules: UrlRules | None = None

    def read_all(self) -> None:
        self.found, self.problems = find_files(self.root)
        for declared in self.found:
            document = self.document(declared.path, declared.file)
            if document is None:
                continue
            self.read[declared] = document
            spec = self.spec(MODELS[declared.folder], document)
            self.problems += _misnamed(declared, document)
            if spec is not None:
                self.specs[declared] = spec
        self.read_url_rules()

    def read_url_rules(self) -> None:
        path = self.root / URL_RULES
        if not path.exists():
            right = "add it, with `version: 1` and `drop_params`"
            self.problems.append(Problem(f"{self.root.name}/{URL_RULES}", "", "is missing", right))
        elif (document := self.document(path, f"{self.root.name}/{URL_RULES}")) is not None:
            self.url_rules = self.spec(UrlRules, document)

    def document(self, path: Path, file: str) -> Document | None:
        document, problems = read_document(path, file)
        self.problems += problems
        return document

    def spec(self, model: type[Spec], document: Document) -> Spec | None:
        """The model of a document; a place that could not be read is not reported a second time."""
        spec, problems = build_spec(model, document)
        known = {(problem.file, problem.path) for problem in self.problems}
        self.problems += [problem for problem in problems if (problem.file, problem.path) not in known]
        return spec

    def judge_all(self, judge: Judge | None) -> None:
        for declared, spec in self.specs.items():
            document = self.read[declared]
            if isinstance(spec, SourceSpec):
                self.problems += [document.problem(*found) for found in judge_source(spec)]
            elif isinstance(spec, TemplateSpec) and judge is not None:
                self.problems += [document.problem(read_path(path), *said) for path, *said in judge(spec)]
        self.problems += judge_references(self.read, self.specs, self.found)
        self.problems += judge_versions(self.read, self.specs)
        self.problems += twin_entries([document for file, document in self.read.items() if file.folder == SOURCES])

    def catalog(self) -> Catalog:
        """The catalog, once there are no problems."""
        if self.url_rules is None:
            raise InvariantError("a catalog without problems has URL rules")
        schemas: dict[str, list[SchemaSpec]] = {}
        for spec in self.of(SchemaSpec):
            schemas.setdefault(spec.dataset, []).append(spec)
        return Catalog(
            root=self.root,
            sources={spec.source: spec for spec in self.of(SourceSpec)},
            templates={spec.ref: spec for spec in self.of(TemplateSpec)},
            schemas={dataset: tuple(specs) for dataset, specs in schemas.items()},
            checks={spec.checks: spec for spec in self.of(ChecksSpec)},
            url_rules=self.url_rules,
        )

    def of(self, model: type[Spec]) -> list[Spec]:
        return [spec for spec in self.specs.values() if isinstance(spec, model)]


def _misnamed(declared: DeclaredFile, document: Document) -> list[Problem]:
    """What the file says of its own name and version must be what its place says."""
    key = NAME_KEYS[declared.folder]
    problems = []
    name, version = document.data.get(key), document.data.get("version")
    if isinstance(name, str) and name != declared.name:
        wrong = f"is {name[:64]!r}, but the file's place says {declared.name!r}"
        problems.append(document.problem((key,), wrong, f"write `{key}: {declared.name}`, or move the file"))
    if declared.version and type(version) is int and 0 < version != declared.version:
        wrong = f"is {version}, but the file is named v{declared.version}.yaml"
        problems.append(
            document.problem(("version",), wrong, f"write `version: {declared.version}`, or rename the file")
        )
    return problems


def _place(problem: Problem) -> tuple[str, int, str, str]:
    return problem.file, problem.line or 0, problem.path, problem.wrong


def _named(values: Mapping[str, Value], name: str, noun: str, nouns: str) -> Value:
    if name in values:
        return values[name]
    raise UnknownNameError(f"there is no {noun} {name[:100]!r} in the catalog; {near_names(name, values, nouns)}")


def _no_version(noun: str, name: str, version: str, versions: list[int]) -> str:
    shown = ", ".join(str(number) for number in versions)
    return f"{noun} {name!r} has no version {version[:20]!r}; its versions are {shown}"
