"""Airflow's plugin that puts :class:`chainlake.local.door.Door` before the API server; the launcher names its folder.

Every process of Airflow imports this file, so that what only the API server needs is imported when it is asked for.
"""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from chainlake.local.door import ROLE, USER, Door, own_hosts


def _password() -> str:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    return SimpleAuthManager.get_passwords()[USER]


def _session() -> str:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    return get_auth_manager().generate_jwt(user=SimpleAuthManagerUser(username=USER, role=ROLE))


def _door(app: Any) -> Door:
    from airflow.configuration import conf

    return Door(app, own_hosts(conf.getint("api", "port")), _password, _session)


class ChainlakeDoor(AirflowPlugin):
    """The door as a layer before everything."""

    name = "chainlake_door"
    fastapi_root_middlewares = [{"name": "chainlake_door", "middleware": _door}]
