"""Counters for Prometheus: how much is asked, how fast it is answered, what comes out."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

LATENCY_BUCKETS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics:
    """The counters of one application; each application has its own registry."""

    def __init__(self) -> None:
        """Register all counters at zero."""
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "sizing_requests",
            "Answered requests by route template, method and status.",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self.latency = Histogram(
            "sizing_request_seconds",
            "Time to answer by route template.",
            ("route",),
            buckets=LATENCY_BUCKETS_SECONDS,
            registry=self.registry,
        )
        self.sizings = Counter(
            "sizing_outcomes",
            "Sizings by outcome: ok or the code of the reason.",
            ("outcome",),
            registry=self.registry,
        )
        self.quotes = Counter(
            "sizing_quotes",
            "Sent quote forms by outcome: stored, or why not.",
            ("outcome",),
            registry=self.registry,
        )
        self.deliveries = Counter(
            "sizing_deliveries",
            "Attempts to deliver a mail or webhook by channel and outcome.",
            ("channel", "outcome"),
            registry=self.registry,
        )
        self.undelivered = Gauge(
            "sizing_outbox",
            "Mails and webhooks not delivered: waiting for the next try, or dead.",
            ("state",),
            registry=self.registry,
        )
        self.waiting: int | None = None
        self.dead: int | None = None

    def quote(self, outcome: str) -> None:
        """Count one sent quote form."""
        self.quotes.labels(outcome=outcome).inc()

    def delivery(self, channel: str, outcome: str) -> None:
        """Count one attempt to deliver."""
        self.deliveries.labels(channel=channel, outcome=outcome).inc()

    def outbox(self, *, waiting: int, dead: int) -> None:
        """Note what is not delivered yet, and what was given up."""
        self.waiting, self.dead = waiting, dead
        self.undelivered.labels(state="waiting").set(waiting)
        self.undelivered.labels(state="dead").set(dead)

    def observe(self, *, route: str, method: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        self.requests.labels(route=route, method=method, status=str(status)).inc()
        self.latency.labels(route=route).observe(seconds)

    def exposition(self) -> bytes:
        """Return all counters in the Prometheus text format."""
        return generate_latest(self.registry)
