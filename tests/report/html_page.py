"""An HTML page as a reader finds it."""

from collections import defaultdict
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "wbr"}


class Page(HTMLParser):
    """The page's elements, its text, and whether every element is closed in order.

    folded: by tag, for each element whether it is inside of <details>.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.doctype = ""
        self.folded: dict[str, list[bool]] = defaultdict(list)
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_decl(self, decl: str) -> None:
        self.doctype = decl

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        self.tags.append((tag, dict(attrs)))
        self.folded[tag].append("details" in self._open)
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        """All words, with one space between them."""
        return " ".join(" ".join(self.words).split())

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every element of this name."""
        return [attributes for name, attributes in self.tags if name == tag]
