#!/bin/sh
# The broker, with the defaults of Kafka's own script.
export KAFKA_HEAP_OPTS="${KAFKA_HEAP_OPTS:--Xmx1G -Xms1G}"
if [ -e /opt/kafka/config/log4j2.yaml ]; then
  export KAFKA_LOG4J_OPTS="${KAFKA_LOG4J_OPTS:--Dlog4j2.configurationFile=/opt/kafka/config/log4j2.yaml}"
else
  export KAFKA_LOG4J_OPTS="${KAFKA_LOG4J_OPTS:--Dlog4j.configuration=file:/opt/kafka/config/log4j.properties}"
fi
exec kafka-run-class.sh kafka.Kafka "$@"
