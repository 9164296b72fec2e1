# The same steps as `make serve`, in two stages: build with pip, run without it and without root.
FROM python:3.13-slim AS build
WORKDIR /srv
COPY requirements.lock ./
RUN python -m venv .venv \
    && .venv/bin/python -m pip install --no-cache-dir --require-hashes -r requirements.lock \
    && .venv/bin/python -m pip uninstall --yes pip
COPY app app
COPY templates templates
COPY static static
COPY data data
RUN .venv/bin/python -m app.tools.translations compile \
    # Babel brings the data of every language; three are used
    && find .venv/lib/python3.13/site-packages/babel/locale-data -name '*.dat' \
       ! -name 'root.dat' ! -name 'en.dat' ! -name 'en_US.dat' ! -name 'de.dat' ! -name 'de_DE.dat' -delete \
    && .venv/bin/python -m compileall -q app

FROM python:3.13-slim
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 SIZING_ENVIRONMENT=production
WORKDIR /srv
RUN useradd --system --no-create-home --uid 10001 sizing
COPY --from=build /srv /srv
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s \
    CMD [".venv/bin/python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
CMD [".venv/bin/python", "-m", "uvicorn", "--factory", "app.main:create_app", "--host", "0.0.0.0", "--port", "8000", "--no-access-log"]
