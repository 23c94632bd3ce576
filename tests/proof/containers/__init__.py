"""``make docker-proof``: the image, the services of docker/compose.yaml, and what a machine without containers gives.

For machines without a registry: ``images.py`` has podman build the project's own Dockerfile on images made of Debian's
packages, which stand in under the names of the official ones; ``services.py`` has dockerd and docker-compose run them,
by ``make docker-run`` and ``make docker-stop``; ``checks.py`` looks at the containers, ``reference.py`` makes what the
lake is compared with; ``__main__.py`` has the parts.
"""
