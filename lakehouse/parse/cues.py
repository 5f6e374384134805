"""What the names of an element say that it is for: navigation, comments, related reading, captions."""

from __future__ import annotations

import re
from functools import lru_cache

import lxml.etree

NO_CUES: frozenset[str] = frozenset()
LANDMARKS = {
    "nav": "nav",
    "footer": "footer",
    "aside": "aside",
    "menu": "nav",
    "figcaption": "caption",
    "figure": "caption",
}
ROLES = {
    "navigation": "nav", "contentinfo": "footer", "complementary": "aside", "search": "nav", "menu": "nav",
    "menubar": "nav", "toolbar": "nav", "dialog": "popup", "alertdialog": "popup", "tablist": "nav",
}  # fmt: skip
CUES = {
    "comments": "comment comments commentlist disqus livefyre pinglun respond replies reply guestbook",
    "related": "related relate recommend recommended recommendation recommendations recirc recirculation tuijian "
    "xiangguan readmore morestories trending popular mostpopular outbrain taboola teaser teasers rank ranking hot "
    "upnext nextup suggested suggestions",
    "nav": "nav navbar navigation menu submenu breadcrumb breadcrumbs crumb crumbs toolbar pager pagination pagenav "
    "topbar skip masthead daohang tabs",
    "aside": "sidebar sidebars aside rail rightrail widgets sider",
    "footer": "footer foot footnav copyright colophon banquan statement disclaimer",
    "share": "share sharing sharebar sharethis social socials addthis bdsharebuttonbox fenxiang follow",
    "promo": "promo promos promotion advert adverts advertisement advertising ad ads adv adsense sponsor sponsored "
    "sponsors banner guanggao newsletter subscribe subscription signup donate download qrcode qr",
    "popup": "popup modal overlay lightbox cookie cookies consent gdpr login register tooltip",
    "tags": "tags taglist keywords",
    "byline": "byline dateline timestamp pubdate metadata postmeta bio authorbio aboutauthor authorbox editor zebian "
    "credit credits source laiyuan",
    "caption": "caption captions wpcaption",
}
CUE_OF = {word: cue for cue, words in CUES.items() for word in words.split()}
HIDDEN = frozenset({"hidden", "is-hidden", "hide", "d-none"})
MAX_NAMES = 500
TOKENS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
MODIFIER = re.compile(r"^(?:has|have|with|without|no|not|is|js|tag|category|post|type|template|page)(?:[-_]|(?=[A-Z]))")


def cues_of(element: lxml.etree._Element, tag: str) -> frozenset[str]:
    """What an element's tag, role, class and id say it is for, such as `nav`, `related` or `comments`."""
    names = f"{element.get('class') or ''} {element.get('id') or ''}"[:MAX_NAMES]
    return _cues_of_names(tag, element.get("role"), names)


@lru_cache(maxsize=4096)
def _cues_of_names(tag: str, role: str | None, names: str) -> frozenset[str]:
    found = {cue for cue in (LANDMARKS.get(tag), ROLES.get(role or "")) if cue}
    for name in names.split():
        # Hidden at all or on some screens, as `md:hidden`: a page's text is shown on every screen.
        if name.rpartition(":")[2] in HIDDEN:
            found.add("popup")
        if MODIFIER.match(name):
            continue
        words = [*TOKENS.findall(name), name.replace("-", "").replace("_", "")]
        found.update(CUE_OF[word] for word in map(str.lower, words) if word in CUE_OF)
    return frozenset(found) or NO_CUES
