"""A preprocessor of mdBook: turns relative links to files outside of docs/, which are not part of the book, into links to the repository.

mdBook runs it with the context and the book as JSON on standard input, and reads the book from standard output.
"""

import json
import posixpath
import re
import sys

# The target of an inline link. Code blocks of the docs have no such text.
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)[^)\s]+(?=\))")


def book_link(link: str, page: str, repository: str) -> str:
    """Returns the link for the book; `page` is the path, below docs/, of the page that contains it."""
    path, mark, anchor = link.partition("#")
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), path))
    if path.startswith("docs/"):
        return link
    return f"{repository}/blob/main/{path}{mark}{anchor}"


def rewrite(items: list, repository: str) -> None:
    """Rewrites the links of chapters and of the chapters below them."""
    for chapter in (item["Chapter"] for item in items if isinstance(item, dict) and "Chapter" in item):
        page = chapter["path"]
        chapter["content"] = LINK.sub(lambda link: book_link(link[0], page, repository), chapter["content"])
        rewrite(chapter["sub_items"], repository)


def main() -> None:
    if sys.argv[1:2] == ["supports"]:
        return
    context, book = json.load(sys.stdin)
    rewrite(book["items"], context["config"]["output"]["html"]["git-repository-url"])
    json.dump(book, sys.stdout)


main()
