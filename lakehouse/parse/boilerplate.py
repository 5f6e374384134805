"""Lines that newsrooms put into article elements and that are not the article: credits, calls to follow, rights.

Closed lists of labels, Chinese and English, matched on whole short lines or on their beginnings; prose is left alone.
"""

from __future__ import annotations

import re

MAX_LINE = 320.0
MAX_LABEL = 160.0
MAX_CREDITS = 120.0
MAX_OPENING = 90.0
MAX_HEAD_LINE = 90

BRACKET = r"[【\[（(〔「]?\s*"
ROLES_ZH = (
    "责任编辑|责编|责任编审|执行编辑|值班编辑|编辑|编审|审核|审校|校对|校审|校稿|监制|终审|复审|初审|值班主编|值班编委|主编"
    "|排版|制作|美编|图编|视觉|统筹|新媒体编辑|流程编辑|实习编辑|实习生|供稿|撰稿|稿件来源|文章来源|资料来源|信息来源|内容来源"
    "|图片来源|来源|作者|文字|摄影|图片|图文|通讯员|采写|作者简介|点击数|阅读量|浏览次数|点击次数|发布时间|发布日期"
)
KINDS_ZH = "(?:阅读|新闻|报道|推荐|文章|资讯|内容|链接|回顾|评论|视频|专题|话题)"


def _compiled(*alternatives: str, start: bool = True) -> re.Pattern[str]:
    joined = "|".join(alternatives)
    return re.compile(f"^(?:{joined})" if start else joined, re.IGNORECASE)


START_ZH = _compiled(
    rf"{BRACKET}(?:本文)?(?:{ROLES_ZH})\s*[:：丨|｜/／]",
    rf"{BRACKET}(?:原标题|原文标题|(?:本报|本网|本刊)(?:综合|编辑))\s*[:：]",
    rf"{BRACKET}(?:免责|版权|特别|郑重|平台)?声明\s*[:：]",
    rf"{BRACKET}(?:版权(?:所有|归)|未经(?:授权|许可|允许)|转载(?:请|须|自))",
    rf"{BRACKET}本文(?:系|为|首发|转载|不代表|仅代表|版权|来源)",
    rf"{BRACKET}(?:以上|本)内容(?:仅|不)",
    rf"{BRACKET}(?:相关|推荐|延伸|更多|热门|精彩|往期){KINDS_ZH}",
    r"(?:点击|扫描|长按|识别|关注|欢迎关注|搜索关注)[^。]{0,24}(?:二维码|公众号|客户端|微信|专题|观看|查看|下载|阅读原文|订阅)",
    r"(?:点击|进入|点击进入)专题|(?:安装|下载|打开)[^。]{0,16}(?:客户端|APP)",
    r"阅读原文|展开(?:全文|阅读)|举报|返回(?:首页|列表|顶部)|(?:上|下)一(?:篇|条)|【?(?:打印|关闭|纠错|收藏|字号|分享)",
    r"(?:自动|正在)播放|END$|（?完）?$|—+\s*(?:end|完)\s*—+",
)
ANY_ZH = _compiled(
    r"相关资讯请关注|更多[^。]{0,16}(?:资讯|内容|信息|新闻)[^。]{0,10}(?:请关注|请点击|尽在|敬请)",
    r"(?:扫描|长按)[^。]{0,14}(?:二维码|关注)|(?:下载|安装)[^。，]{0,12}客户端",
    r"关注[^。]{0,16}(?:公众号|官方微信|官方微博)|看都看完|点个?【?(?:在看|赞)|点击菜单栏",
    start=False,
)
CREDITS_ZH = re.compile(r"(?:供稿|摄影|摄像|文字|图片|编辑|责编|审核|校对|通讯员)\s*[/／丨|]\s*[\u4e00-\u9fff]{2,4}")
START_EN = _compiled(
    r"advertisements?$|(?:article|story|page) continues below|continue reading|advertisement [-–] ",
    r"(?:read|see|also read) (?:more|next|also)\b|more (?:from|on|in|stories|news|coverage|about)\b",
    r"related\b\s*(?::|$|stor|article|content|topic|coverage|video|post|read|link|news)",
    r"recommended\b\s*(?::|$|stor|read|video|for you)|most (?:popular|read|viewed|shared)\b|trending\b",
    r"popular (?:now|stories|articles)|editors?[’']? picks?\b|featured\s+(?:stories|articles|videos?)$",
    r"don[’']t miss:?$",
    r"you (?:may|might) (?:also )?(?:like|be interested)|up next|next up|what to read next",
    r"watch (?:now|next|live|more|:)|(?:watch|listen|video):",
    r"sign up\b|subscribe\b|newsletter|get (?:the|our) (?:latest|best|top|daily|news)",
    r"join (?:our|the) (?:newsletter|mailing|conversation)|click (?:here|to)\b|tap here|download (?:the|our)\b",
    r"follow (?:us|me|him|her|[@A-Z]\S* (?:on|@))|like us on|find us on|share (?:this|on|via)\b|tweet$",
    r"comments?$|leave a (?:comment|reply)|(?:view|show|\d+) comments?$|courtesy of|getty images|credit\s*:",
    r"(?:photo|image|picture|video|illustration|photograph)s?\s*(?:credit|courtesy|by|:)",
    r"contact (?:us|the (?:author|writer|reporter))|(?:reach|email|contact|e-mail) (?:him|her|them|reporter|the)\b",
    r"report (?:a|an) (?:typo|error|correction)|(?:print|email|save|share)$|about the (?:author|writer)",
    r"tags?:|topics?:|filed under|categories:|in this article|table of contents|jump to|skip (?:to|ad)|loading",
    r"(?:by|story by|words by|written by)$",
)
RIGHTS_EN = _compiled(
    r"copyright\W{0,3}(?:©|\(c\)|\d{4}|by\b|the\b|all\b|[A-Z])|©|\(c\) \d{4}|all rights reserved",
    r"this (?:document|material|content) (?:is|may)\b.{0,80}copyright",
    r"(?:this|the) (?:article|story|post|piece|column) (?:was |has been |is |)?(?:originally|first|also)? ?"
    r"(?:appeared|published|posted|ran|produced)",
    r"originally published|republished (?:with|from|by)|reprinted (?:with|from|by)",
    r"(?:have|got) a (?:news )?(?:tip|story|question)|send (?:tips|us)",
)
ANY_EN = _compiled(
    r"all rights reserved|(?:can|may) be (?:reached|contacted|followed) (?:at|via|by|on)\b",
    r"follow (?:him|her|them|us|me|\S+) on (?:twitter|facebook|instagram|x\b|threads|tiktok)",
    r"sign up (?:for|to) (?:our|the|receive)|subscribe to (?:our|the)|article continues below|click here (?:to|for)",
    r"purchase (?:a product|something) .{0,60}(?:commission|compensation)",
    r"may (?:earn|receive) (?:a |an )?(?:affiliate |small )?(?:commission|compensation)",
    r"^\W{0,3}[\w.+-]{1,60}@[\w-]{1,60}\.[\w.]{2,60}\W{0,3}$",
    start=False,
)
TWEET = re.compile(r"pic\.twitter\.com/|^[—–-]\s?.{1,60}\(@\w+\)\s")
END_ZH = _compiled(
    rf"{BRACKET}本文来源\s*[:：]",
    rf"{BRACKET}(?:责任编辑|责编|编辑|主编|校对|审核|监制)\s*[:：丨|｜/／]",
    rf"{BRACKET}免责声明\s*[:：]",
)
END_EN = _compiled(
    r"copyright\W{0,3}(?:©|\(c\)|\d{4})|©|comments?$|\d+ comments?$|leave a (?:comment|reply)|view comments",
    r"join the conversation|about the (?:author|writer)|filed under|topics?:|tags?:",
    r"(?:this|the) (?:article|story|post|piece) (?:was |)(?:originally|first) ",
)
RELATED = _compiled(
    rf"{BRACKET}(?:相关|推荐|延伸|热门|精彩|往期|更多){KINDS_ZH}\s*[:：]?",
    r"延伸\s*·\s*推荐|猜你喜欢|大家都在看",
    r"related\b\s*(?::|$|stor|article|content|coverage|post|read|topic|video|news)",
    r"more (?:from|on|stories|coverage|like this)\b|read (?:next|more|also)\b|see also\b|also read\b|what to read next",
    r"most (?:popular|read|viewed)\b|recommended\b\s*(?::|$|stor|read|for you)|popular (?:now|stories)|trending\b",
    r"you (?:may|might) (?:also )?(?:like|be interested)|up next|next up|editors?[’']? picks?\b|don[’']t miss:?$",
    r"best of\b.{0,30}$|featured (?:stor|article|video)",
)
HEAD_ZH = _compiled(
    rf"^{BRACKET}(?:{ROLES_ZH}|时间|日期|发布于|更新于|更新时间|浏览|点击|阅读|人气|字号|字体|记者|文)\s*[:：/／|丨]",
    r"^[\d\s年月日时分秒:：./\-]+$|^(?:19|20)\d\d\s?[-/.年]\s?\d{1,2}\s?[-/.月]\s?\d{1,2}日?\s[^。！？]{0,60}$",
    r"(?:浏览|点击|阅读|来源|作者)(?:次数|数|量)?\s*[:：]",
    start=False,
)
HEAD_EN = _compiled(
    r"by\b|written by|posted|published|updated|last updated|first published|date:|author:|source:",
    r"\d+ min(?:ute)?s?(?: read)?|[a-z]+day,\s",
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d{1,2},? (?:19|20)\d\d\b.{0,30}$",
)


def is_boilerplate(text: str, weight: float) -> bool:
    """Whether a whole line is a credit, a call to follow, a note of rights or the like."""
    if weight > MAX_LINE:
        return False
    if (weight <= MAX_LABEL and START_EN.match(text)) or RIGHTS_EN.match(text):
        return True
    if ANY_EN.search(text) or TWEET.search(text):
        return True
    if text.isascii():
        return False
    if weight <= MAX_CREDITS and "。" not in text and CREDITS_ZH.search(text):
        return True
    return bool(START_ZH.match(text) or ANY_ZH.search(text))


def ends_article(text: str, weight: float) -> bool:
    """Whether a line is one that stands after the last paragraph: the editor's credit, rights, comments."""
    return weight <= MAX_LINE and bool(END_ZH.match(text) or END_EN.match(text))


def opens_related(text: str, weight: float) -> bool:
    """Whether a short line opens a box of related reading."""
    return weight <= MAX_OPENING and RELATED.match(text) is not None


def is_head_line(text: str) -> bool:
    """Whether a short line before the text tells of the article: its date, source, author, readers."""
    return len(text) <= MAX_HEAD_LINE and bool(HEAD_ZH.search(text) or HEAD_EN.search(text))
