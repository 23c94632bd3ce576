"""How Data Docs become HTML: every text is escaped once, at one place, before a template sees it.

The templates of Great Expectations escape some parameters and paste all else as it is: cells of tables, messages of
errors, names, notes. A value such as ``<script>`` in a landed file would run in the browser of whoever reads the page.
"""

from __future__ import annotations

import html
from typing import Any

from great_expectations.render.components import RenderedContent
from great_expectations.render.view.view import DefaultJinjaIndexPageView, DefaultJinjaPageView

from chainlake.terminal import visible

#: Markup that the renderers of Great Expectations 1.24 put into content; only these very texts are left as they are.
_MARKUP = frozenset(
    {
        '<i class="fas fa-check-circle text-success" aria-hidden="true"></i>',
        '<i class="fas fa-times text-danger" aria-hidden="true"></i>',
        'Failed expectations <span class="mr-3 triangle"></span>',
        'Expectation types <span class="mr-3 triangle"></span>',
    }
)


def escaped(value: Any) -> Any:
    """A rendered document, or a part of one, with all its texts fit for HTML, keys too."""
    if isinstance(value, dict):
        return {escaped(key): escaped(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [escaped(item) for item in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = str(value)
    return text if text in _MARKUP else html.escape(visible(text), quote=True)


class _Escaping:
    """What both kinds of page do otherwise than those of Great Expectations."""

    def render(self: Any, document: RenderedContent, template: str | None = None, **kwargs: Any) -> str:
        """The HTML of ``document``."""
        self._validate_document(document)
        found = self._get_template(template or self._template)
        return str(found.render(escaped(document.to_json_dict()), **escaped(kwargs)))

    @staticmethod
    def _escape_template_param_value(value: Any) -> Any:
        """Not again: what comes here is escaped."""
        return value


class EscapedPage(_Escaping, DefaultJinjaPageView):
    """A page of a suite or a result."""


class EscapedIndex(_Escaping, DefaultJinjaIndexPageView):
    """The first page of the site."""
