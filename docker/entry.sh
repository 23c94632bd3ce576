#!/bin/sh
# What a container of the image runs: the set-up of Airflow's tables, a component of Airflow, a daemon of Spark, or any
# other command.
set -eu
umask 027

case "${1:-}" in
init)
    airflow db migrate
    exec airflow pools set "${CHAINLAKE_POOL:-spark}" "${CHAINLAKE_POOL_SLOTS:-2}" "Spark applications that run at a time"
    ;;
api-server)
    # Airflow opens the file for writing, and secrets are read-only.
    install -m 600 /run/secrets/airflow_passwords "$AIRFLOW_HOME/passwords.json"
    exec airflow api-server
    ;;
scheduler | dag-processor | triggerer)
    exec airflow "$1"
    ;;
spark-master)
    exec spark-class org.apache.spark.deploy.master.Master --host "$(hostname)" --port 7077 --webui-port 8080 \
        --properties-file "$CHAINLAKE_SPARK_CONF"
    ;;
spark-worker)
    exec spark-class org.apache.spark.deploy.worker.Worker --webui-port 8081 --work-dir /var/lib/spark \
        --cores "${SPARK_CORES:-2}" --memory "${SPARK_MEMORY:-2g}" --properties-file "$CHAINLAKE_SPARK_CONF" "$SPARK_MASTER"
    ;;
*)
    exec "$@"
    ;;
esac
