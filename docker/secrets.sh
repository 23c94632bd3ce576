#!/bin/sh
# Makes the missing files of docker/secrets: compose.yaml hands them to containers, and nothing else reads them.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets

random() {
    od -An -tx1 -N32 /dev/urandom | tr -d ' \n'
}

# The folder keeps other users out; inside a container, the files are read by an account that does not exist here.
keep() {
    if [ ! -s "secrets/$1" ]; then
        cat >"secrets/$1"
        chmod 444 "secrets/$1"
    fi
}

random | keep database_password
printf 'postgresql+psycopg2://airflow:%s@database/airflow' "$(cat secrets/database_password)" | keep database_url
random | keep page_key
random | keep token_key
random | keep store_key
printf '{"admin": "%s"}\n' "$(random)" | keep airflow_passwords
{
    cat spark.conf
    printf 'spark.authenticate.secret %s\n' "$(random)"
} | keep spark_conf
