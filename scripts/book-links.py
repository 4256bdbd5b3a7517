"""A preprocessor of mdBook: rewrites relative links that leave docs/ to links to the repository, which is not part of the book.

mdBook runs it with the context and the book as JSON on standard input, and reads the book from standard output.
"""

import json
import posixpath
import re
import sys

# The target of an inline link. Code blocks of the docs have no such text.
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)[^)\s]+(?=\))")


def rewritten(link: str, page: str, repository: str) -> str:
    """Returns the link as the book needs it; `page` is the path of its page in docs/."""
    path, mark, anchor = link.partition("#")
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), path))
    if path.startswith("docs/"):
        return link
    return f"{repository}/blob/main/{path}{mark}{anchor}"


def rewrite(items: list, repository: str) -> None:
    """Rewrites the links of chapters and of the chapters below them."""
    for chapter in (item["Chapter"] for item in items if isinstance(item, dict) and "Chapter" in item):
        page = chapter["path"]
        chapter["content"] = LINK.sub(lambda link: rewritten(link[0], page, repository), chapter["content"])
        rewrite(chapter["sub_items"], repository)


def main() -> None:
    if sys.argv[1:2] == ["supports"]:
        return
    context, book = json.load(sys.stdin)
    rewrite(book["items"], context["config"]["output"]["html"]["git-repository-url"])
    json.dump(book, sys.stdout)


main()
