"""A page of HTML as its reader sees it: elements, attributes and texts."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "input", "img", "br", "link", "hr"}


class Page(HTMLParser):
    """Elements, attributes and texts of a page; fails where an element is not closed in turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.contents: dict[str, list[str]] = {"script": [], "style": []}
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Elements of SVG may close themselves."""
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        self.contents.get(inside, self.texts).append(data)
