# The gateway as one process, for hosts other than Lambda: docs/container.md.
# Pin both stages to a digest that you have verified: `--build-arg PYTHON=python:3.13-slim@sha256:...`.
ARG PYTHON=python:3.13-slim

FROM ${PYTHON} AS build
WORKDIR /src
COPY infra/environments/run.txt infra/environments/run.txt
RUN python -m venv /opt/tollgate \
    && /opt/tollgate/bin/python -m pip install --no-cache-dir --no-compile --no-deps \
        --require-hashes --only-binary :all: --requirement infra/environments/run.txt \
    && /opt/tollgate/bin/python -m pip uninstall --yes \
        hatchling packaging pathspec pluggy tomlkit trove-classifiers
# The wheel of `make wheels`, which is the released one.
COPY dist/tollgate_llm_slim-*.whl ./
RUN /opt/tollgate/bin/python -m pip install --no-cache-dir --no-compile --no-deps --no-index *.whl
COPY routing.yaml ./
COPY infra/catalog infra/catalog
RUN /opt/tollgate/bin/tollgate compile routing.yaml --output /opt/tollgate/routing.json \
    && /opt/tollgate/bin/python -m pip uninstall --yes pip \
    && python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/tollgate/lib

FROM ${PYTHON}
COPY --from=build /opt/tollgate /opt/tollgate
ENV PATH=/opt/tollgate/bin:$PATH PYTHONUNBUFFERED=1 TOLLGATE_CATALOG_FILE=/opt/tollgate/routing.json
USER 10001:10001
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["python", "-c", \
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/v1/health/live', timeout=4)"]
# The exec form lets SIGTERM reach the process, which then finishes its streams and settles.
CMD ["tollgate", "serve", "--host", "0.0.0.0", "--port", "8080"]
