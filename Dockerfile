# sqlstream with Spark and Java, and no project in it: docs/deploying.md tells how one is added.
#   docker build --tag sqlstream .
FROM python:3.11-slim-bookworm AS build
WORKDIR /build
COPY requirements.lock ./
RUN pip install --no-cache-dir --constraint requirements.lock hatchling
COPY pyproject.toml README.md LICENSE ./
COPY docs/errors.md docs/errors.md
COPY sqlstream sqlstream
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir wheels .
RUN python -m venv /opt/sqlstream
RUN /opt/sqlstream/bin/pip install --no-cache-dir --constraint requirements.lock wheels/*.whl

FROM python:3.11-slim-bookworm
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless tini \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/sqlstream /opt/sqlstream
RUN useradd --uid 1000 --create-home sqlstream \
 && install --directory --owner sqlstream --group sqlstream /srv/project /var/lib/sqlstream
ENV PATH=/opt/sqlstream/bin:$PATH
USER sqlstream
# containers then start in about half the time
RUN sqlstream debug --class-archive build
WORKDIR /srv/project
VOLUME /var/lib/sqlstream
STOPSIGNAL SIGTERM
# as process 1 Python would lose a SIGTERM that comes while Python itself starts
ENTRYPOINT ["tini", "--", "sqlstream"]
CMD ["--help"]
