# docker build --build-arg REVISION=$(git rev-parse HEAD) -t fabric-exporter .
# docker run --network host --read-only --cap-drop ALL --security-opt no-new-privileges fabric-exporter
ARG PYTHON=3.11

FROM python:${PYTHON}-slim-bookworm AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements-build.txt requirements.txt ./
RUN python -m pip install --require-hashes -r requirements-build.txt \
    && python -m venv /opt/fabric-exporter \
    && /opt/fabric-exporter/bin/python -m pip install --require-hashes --only-binary :all: -r requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY exporter exporter
RUN python -m pip wheel --no-deps --no-build-isolation --wheel-dir wheels . \
    && /opt/fabric-exporter/bin/python -m pip install --no-deps wheels/*.whl \
    && /opt/fabric-exporter/bin/python -m pip uninstall --yes pip setuptools

FROM python:${PYTHON}-slim-bookworm
ARG REVISION=
LABEL org.opencontainers.image.title="fabric-exporter" \
      org.opencontainers.image.description="Prometheus exporter for the network of a GPU host" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/fabric-exporter /opt/fabric-exporter
ENV PATH=/opt/fabric-exporter/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 FABRIC_EXPORTER_REVISION=${REVISION}
USER 65534:65534
EXPOSE 10073
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["fabric-exporter", "ping"]
ENTRYPOINT ["fabric-exporter"]
