"""What an operator can set: environment variables with the prefix SIZING_."""

from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

Environment = Literal["development", "production"]
LogLevel = Literal["debug", "info", "warning", "error"]


class Settings(BaseSettings):
    """Settings of one running instance; every field is one SIZING_ variable.

    The table in README.md is generated from the descriptions below (`make readme`).
    """

    model_config = SettingsConfigDict(env_prefix="SIZING_", frozen=True, extra="ignore")

    environment: Environment = Field(
        default="development",
        description=(
            "`production` writes JSON logs, caches templates and answers a failure with a page; "
            "`development` reloads templates and shows tracebacks on the console."
        ),
    )
    base_url: str = Field(
        default="http://127.0.0.1:8000",
        description="Where people reach this instance; used in absolute links and embed code.",
    )
    frame_ancestors: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description=(
            "Comma-separated origins that may show `/embed/…` in a frame, such as "
            "`https://www.example.com`. All other pages refuse every frame."
        ),
    )
    log_level: LogLevel = Field(default="info", description="The least severe line that is logged.")
    metrics_token: SecretStr | None = Field(
        default=None,
        description=(
            "Bearer token for `/metrics` (Prometheus format). Without it `/metrics` does not exist."
        ),
    )

    @property
    def production(self) -> bool:
        """Whether this instance serves the public."""
        return self.environment == "production"

    @field_validator("frame_ancestors", mode="before")
    @classmethod
    def _split_origins(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(origin.strip() for origin in value.split(",") if origin.strip())
        return value

    @field_validator("frame_ancestors")
    @classmethod
    def _only_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            scheme, _, host = origin.partition("://")
            if scheme not in {"http", "https"} or not host or set(host) & set("/ ;,*'\""):
                raise ValueError(
                    f"{origin!r} is not an origin; write scheme and host only, "
                    "such as https://www.example.com"
                )
        return origins

    @model_validator(mode="after")
    def _base_url_without_slash(self) -> Self:
        if not self.base_url.startswith(("http://", "https://")) or self.base_url.endswith("/"):
            raise ValueError(
                f"base_url {self.base_url!r} must start with http:// or https:// "
                "and must not end with a slash"
            )
        return self
