"""The Airflow plugin that puts :class:`chainlake.local.access.AccessMiddleware` in front of the API server.

Airflow finds it in the folder that the launcher names. Every process of Airflow imports this file, so what only the API
server needs is imported when it is first used.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from airflow.plugins_manager import AirflowPlugin

from chainlake.local.access import ROLE, USER, AccessMiddleware, own_hosts


def _password() -> str:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    return SimpleAuthManager.get_passwords()[USER]


def _session() -> str:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    return get_auth_manager().generate_jwt(user=SimpleAuthManagerUser(username=USER, role=ROLE))


def _access(app: Any) -> AccessMiddleware:
    from airflow.configuration import conf

    # Tasks in other containers call the server by its name in their network.
    inside = urlsplit(conf.get("core", "execution_api_server_url", fallback="") or "").netloc.lower()
    hosts = [*own_hosts(conf.getint("api", "port")), *([inside] if inside else [])]
    return AccessMiddleware(app, hosts, _password, _session)


class ChainlakeAccess(AirflowPlugin):
    """Adds the middleware as a layer in front of everything."""

    name = "chainlake_access"
    fastapi_root_middlewares = [{"name": "chainlake_access", "middleware": _access}]
