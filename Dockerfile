# The sommelier as an image: `sommelier run` unless told otherwise. docs/deploy.md says how to use it,
# and how to move to a newer base.

ARG PYTHON_IMAGE=python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b

FROM ${PYTHON_IMAGE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/sommelier
ENV PATH=/opt/sommelier/bin:$PATH
WORKDIR /build
COPY requirements/main.txt requirements/
RUN pip install --require-hashes --only-binary=:all: -r requirements/main.txt
COPY pyproject.toml README.md LICENSE config.py ./
COPY agent agent
COPY bot bot
COPY db db
COPY languages languages
COPY migrations migrations
# Without the history of git, the version is told: --build-arg VERSION=0.3.0.
ARG VERSION=0.2.0.post1
RUN SETUPTOOLS_SCM_PRETEND_VERSION=$VERSION pip install --no-deps --no-build-isolation .

FROM ${PYTHON_IMAGE}
RUN useradd --uid 10001 --no-create-home --home-dir /data sommelier \
    && install --directory --owner=sommelier --group=sommelier --mode=0700 /data
COPY --from=build /opt/sommelier /opt/sommelier
# Inside a container the port is reachable only as far as it is published.
ENV PATH=/opt/sommelier/bin:$PATH \
    HTTP_HOST=0.0.0.0 \
    HTTP_PORT=8080 \
    DATABASE_URL=sqlite+aiosqlite:////data/sommelier.sqlite3
USER sommelier
WORKDIR /data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import http.client, os, sys; c = http.client.HTTPConnection('127.0.0.1', int(os.environ['HTTP_PORT']), timeout=3); c.request('GET', '/healthz'); sys.exit(c.getresponse().status != 200)"]
ENTRYPOINT ["sommelier"]
CMD ["run"]
