# syntax=docker/dockerfile:1
# A broker image with the environment variables of the apache/kafka image: KAFKA_* (or Bitnami's KAFKA_CFG_*) become
# configuration keys, CLUSTER_ID names the cluster. Data lives in /var/lib/kafka/data, or in a volume at
# /bitnami/kafka. PYKAFKA_BROKER_LOG_FORMAT=json makes each log line an object. docs/operations.md has the rest.

FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/pykafka-broker \
    && /opt/pykafka-broker/bin/pip install --no-cache-dir '.[metrics]' \
    && rm -rf /opt/pykafka-broker/lib/python*/site-packages/pip*

FROM python:3.13-slim
LABEL org.opencontainers.image.title="pykafka-broker" org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --uid 1000 --create-home appuser \
    && install -d -o appuser -g appuser /var/lib/kafka/data /mnt/shared/config /etc/kafka/docker /etc/kafka/secrets
COPY --from=build /opt/pykafka-broker /opt/pykafka-broker
COPY --chmod=755 docker/run docker/health /etc/kafka/docker/
ENV PATH=/opt/pykafka-broker/bin:$PATH PYTHONUNBUFFERED=1
USER appuser
VOLUME /var/lib/kafka/data
EXPOSE 9092
HEALTHCHECK --interval=5s --timeout=3s --start-period=5s --retries=5 CMD ["/etc/kafka/docker/health"]
STOPSIGNAL SIGTERM
CMD ["/etc/kafka/docker/run"]
