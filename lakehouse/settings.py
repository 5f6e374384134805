"""Settings: `LAKEHOUSE_…` variables, then `.env`, then the addresses that `make up` saved.

Only `cli/` and `assets/resources.py` read settings; everything else gets clients and values as arguments.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.sources import DotEnvSettingsSource

from lakehouse.clock import Clock
from lakehouse.errors import ConfigError, SettingError

ENV_PREFIX = "LAKEHOUSE_"
ICEBERG_CATALOG = "lakehouse"
WAREHOUSE_BUCKET = "lakehouse-warehouse"
SNAPSHOT_BUCKET = "lakehouse-snapshots"


class Profile(StrEnum):
    """`local` needs no server; `server` uses PostgreSQL, MinIO and Trino."""

    LOCAL = "local"
    SERVER = "server"


class Settings(BaseSettings):
    """All settings with their defaults; every field is `LAKEHOUSE_<NAME>` in the environment."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="ignore", frozen=True)

    profile: Profile = Field(default=Profile.LOCAL, description="`local` or `server`")
    home: Path = Field(default=Path(".lakehouse"), description="folder for all local data")
    catalog_dir: Path = Field(default=Path("catalog"), description="folder with sources, templates, schemas, checks")
    business_tz: str = Field(default="Asia/Shanghai", description="IANA zone that decides every dt")
    log_format: str = Field(default="console", description="`console` or `json`")
    log_level: str = Field(default="INFO", description="DEBUG, INFO, WARNING or ERROR")
    max_body_bytes: int = Field(default=20_000_000, gt=0, description="largest body accepted, after decompression")
    window_days: int = Field(default=92, gt=0, le=1100, description="days of the rolling window that Dagster shows")
    browser_path: str | None = Field(default=None, description="Chromium binary; found by itself where unset")

    database_url: SecretStr | None = Field(
        default=None, description="ledger, server profile: postgresql+psycopg://user:password@host:port/lakehouse"
    )
    iceberg_url: SecretStr | None = Field(
        default=None, description="Iceberg SQL catalog, server profile: postgresql+psycopg://…/iceberg"
    )
    dagster_url: SecretStr | None = Field(
        default=None, description="Dagster storage, server profile: postgresql://…/dagster"
    )
    warehouse: str | None = Field(
        default=None, description="where tables lie; s3://lakehouse-warehouse/warehouse or <home>/warehouse by default"
    )
    s3_endpoint: str | None = Field(default=None, description="server profile: http://host:port of MinIO or another S3")
    s3_region: str = Field(default="us-east-1", description="region name sent to the S3 server")
    collector_access_key: str | None = Field(default=None, description="may put and read snapshots, never delete")
    collector_secret_key: SecretStr | None = None
    pipeline_access_key: str | None = Field(default=None, description="reads snapshots, writes the warehouse")
    pipeline_secret_key: SecretStr | None = None
    reader_access_key: str | None = Field(default=None, description="reads the warehouse only")
    reader_secret_key: SecretStr | None = None
    trino_host: str | None = Field(default=None, description="server profile: host of Trino")
    trino_port: int | None = Field(default=None, description="server profile: port of Trino")
    trino_user: str = Field(default="reader", description="user name sent to Trino")

    @field_validator("business_tz")
    @classmethod
    def _zone_exists(cls, value: str) -> str:
        try:
            Clock.in_zone(value)
        except ConfigError as error:
            raise ValueError(str(error)) from error
        return value

    @field_validator("log_format")
    @classmethod
    def _known_format(cls, value: str) -> str:
        if value not in {"console", "json"}:
            raise ValueError("write console or json")
        return value

    @field_validator("log_level")
    @classmethod
    def _known_level(cls, value: str) -> str:
        if value.upper() not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
            raise ValueError("write DEBUG, INFO, WARNING or ERROR")
        return value.upper()

    @model_validator(mode="after")
    def _server_is_whole(self) -> Self:
        if self.profile is Profile.SERVER:
            missing = [name for name in SERVER_FIELDS if getattr(self, name) is None]
            if missing:
                names = ", ".join(f"{ENV_PREFIX}{name.upper()}" for name in missing)
                raise ValueError(
                    f"profile server needs {names}; run `make up`, which saves them in "
                    f"{self.home / 'server.env'}, or set them yourself"
                )
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments win over the environment, that over `.env`, that over `<home>/server.env`."""
        dotenv = DotEnvSettingsSource(settings_cls, env_file=Path(".env"), env_prefix=ENV_PREFIX)
        known: dict[str, Any] = {**dotenv(), **env_settings(), **init_settings()}
        home = Path(str(known.get("home", cls.model_fields["home"].default)))
        saved = DotEnvSettingsSource(settings_cls, env_file=home / "server.env", env_prefix=ENV_PREFIX)
        return init_settings, env_settings, dotenv, saved

    @property
    def clock(self) -> Clock:
        """The clock of the business time zone."""
        return Clock.in_zone(self.business_tz)


SERVER_FIELDS = (
    "database_url",
    "iceberg_url",
    "s3_endpoint",
    "collector_access_key",
    "collector_secret_key",
    "pipeline_access_key",
    "pipeline_secret_key",
    "reader_access_key",
    "reader_secret_key",
    "trino_host",
    "trino_port",
)


def load_settings(**overrides: Any) -> Settings:
    """Settings from the environment; raises SettingError that names each wrong variable and what would be right."""
    try:
        return Settings(**overrides)
    except ValidationError as error:
        lines = []
        for item in error.errors():
            name = ENV_PREFIX + "_".join(str(part) for part in item["loc"]).upper() if item["loc"] else ""
            field = Settings.model_fields.get(str(item["loc"][0])) if item["loc"] else None
            hint = f" ({field.description})" if field is not None and field.description else ""
            message = item["msg"].removeprefix("Value error, ")
            lines.append(f"{name}: {message}{hint}" if name else message)
        raise SettingError("settings cannot be used: " + "; ".join(lines)) from None
