"""What an operator can set: environment variables with the prefix SIZING_."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

Environment = Literal["development", "production"]
LogLevel = Literal["debug", "info", "warning", "error"]
MailTransport = Literal["starttls", "tls", "plain"]
MIN_KEY_LENGTH = 32


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
    vendor: str = Field(
        default="default",
        pattern=r"^[a-z0-9][a-z0-9-]*$",
        description=(
            "Who offers the servers: the name of a file in `data/vendors/`, without `.toml`."
        ),
    )
    log_level: LogLevel = Field(default="info", description="The least severe line that is logged.")
    metrics_token: SecretStr | None = Field(
        default=None,
        description=(
            "Bearer token for `/metrics` (Prometheus format). Without it `/metrics` does not exist."
        ),
    )
    data_dir: Path = Field(
        default=Path("var"),
        description=(
            "Folder for what this instance keeps: the SQLite file of the quote requests and the "
            "signing key, where neither is set below."
        ),
    )
    database_url: SecretStr | None = Field(
        default=None,
        description=(
            "Where quote requests are stored instead of `quotes.sqlite3` in the data folder: "
            "`postgresql://user:password@host/name` or `sqlite:////path/file.sqlite3`."
        ),
    )
    hub_url: str | None = Field(
        default=None,
        pattern=r"^https?://[A-Za-z0-9.:\-]+/?$",
        description=(
            "Hub on which models that are not in the catalogue are looked up, such as "
            "`https://huggingface.co`. Without it nobody is asked; a pasted config.json works "
            "all the same."
        ),
    )
    secret_keys: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        default=(),
        description=(
            "Comma-separated signing keys of 32 characters or more, newest first; the first signs, "
            "all are accepted. Without it a key is made in the data folder. Several machines must "
            "share it."
        ),
    )
    quote_min_seconds: float = Field(
        default=3.0,
        ge=0,
        le=60,
        description="A quote form that comes back sooner is shown again; 0 switches this off.",
    )
    quote_rate: str = Field(
        default="20/hour",
        pattern=r"^[1-9]\d{0,6}/(second|minute|hour|day)$",
        description=(
            "Quote requests accepted from one network (/24 or /48), per process, such as `20/hour`."
        ),
    )
    quote_retention_days: int = Field(
        default=180,
        ge=1,
        le=3650,
        description="Days after which a quote request and everything about it is deleted.",
    )
    deliver: bool = Field(
        default=True,
        description=(
            "Whether this process sends mails and webhooks and deletes what is old. Several may; "
            "at least one must."
        ),
    )
    retry_seconds: float = Field(
        default=10.0,
        gt=0,
        le=3600,
        description=(
            "Wait before a failed delivery is tried again; it doubles each time, up to six hours."
        ),
    )
    smtp_host: str | None = Field(
        default=None,
        description=(
            "Mail server. Without it mails are printed on the console in development and not sent "
            "in production."
        ),
    )
    smtp_port: int = Field(default=587, ge=1, le=65535, description="Port of the mail server.")
    smtp_transport: MailTransport = Field(
        default="starttls",
        description="`starttls`, `tls` (usually port 465), or `plain` within one machine.",
    )
    smtp_username: str | None = Field(default=None, description="Account at the mail server.")
    smtp_password: SecretStr | None = Field(default=None, description="Its password.")
    mail_from: str | None = Field(
        default=None, description="Sender of all mails; without it the vendor's address."
    )
    desk_email: str | None = Field(
        default=None,
        description="Where quote requests are sent; without it the vendor's address.",
    )
    desk_language: Literal["de", "en"] = Field(
        default="de", description="Language of the mails to the sales desk."
    )
    desk_password_hash: SecretStr | None = Field(
        default=None,
        description=(
            "Argon2 hash of the password for `/desk` (`make desk-password`). Without it `/desk` "
            "does not exist."
        ),
    )
    webhook_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s]+$",
        description="Address that is told of new and deleted quote requests, such as a CRM's.",
    )
    webhook_secret: SecretStr | None = Field(
        default=None,
        description="Key of the HMAC-SHA256 signature of webhooks; needed with `webhook_url`.",
    )
    webhook_private: bool = Field(
        default=False,
        description="Whether the webhook may lead to a private or loopback address.",
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

    @field_validator("secret_keys", mode="before")
    @classmethod
    def _split_keys(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(key.strip() for key in value.split(",") if key.strip())
        return value

    @field_validator("secret_keys")
    @classmethod
    def _long_keys(cls, keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if any(len(key.get_secret_value()) < MIN_KEY_LENGTH for key in keys):
            raise ValueError(f"each key must have {MIN_KEY_LENGTH} characters or more")
        return keys

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

    @model_validator(mode="after")
    def _webhook_is_signed(self) -> Self:
        if self.webhook_url and not self.webhook_secret:
            raise ValueError("webhook_url needs webhook_secret; an unsigned webhook proves nothing")
        return self
