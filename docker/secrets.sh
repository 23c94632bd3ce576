#!/bin/sh
# Makes the files of docker/secrets that are missing: compose.yaml hands them to containers, nothing else reads them.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets

random() {
    od -An -tx1 -N32 /dev/urandom | tr -d ' \n'
}

# The folder keeps other users out; within a container the files are read by an account that has no name here.
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
