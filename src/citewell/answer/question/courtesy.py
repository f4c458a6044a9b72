"""Replies to messages that ask nothing: thanks, greetings, goodbyes, agreement. Pure; knows no documents."""

import re

_THANKS = (
    r"(?:many )?thanks(?: a lot| so much)?|thank you(?: (?:so|very) much)?|thx|cheers|danke(?: schön)?|merci"
    r"(?: beaucoup)?|(?:muchas )?gracias"
)
_PATTERN_BY_REPLY = {
    "You're welcome.": _THANKS,
    "Hello! Ask me something about this book.": r"hi(?: there)?|hello(?: there)?|hey|good (?:morning|afternoon|evening)"
    r"|hallo|hola|bonjour",
    "Goodbye!": r"(?:good)?bye|see you|tschüss|adiós|au revoir",
    "Good. Ask on whenever you like.": r"ok(?:ay)?|k|great|cool|nice|perfect|awesome|alright|fine|got it|i see"
    r"|understood|makes sense|(?:that |this )?help(?:s|ed)|(?:very )?(?:good|helpful)|interesting|super|vale|d'accord",
}
_ONLY_COURTESY = re.compile(rf"(?:(?:{'|'.join(_PATTERN_BY_REPLY.values())})(?:\W+|$))+", re.IGNORECASE)
_LEADING_COURTESY = re.compile(
    rf"^(?:(?:{_THANKS}|ok(?:ay)?|great|cool|nice|got it|i see|alright)[,.!…]+\s+)+(?=\S)",
    re.IGNORECASE,
)


def courtesy_reply(text: str) -> str:
    """The reply to a message that only thanks, greets or agrees; empty for every other message."""
    if not _ONLY_COURTESY.fullmatch(text):
        return ""
    replies = _PATTERN_BY_REPLY.items()
    return next(reply for reply, pattern in replies if re.search(rf"\b(?:{pattern})\b", text, re.IGNORECASE))


def strip_leading_courtesy(text: str) -> str:
    """The message without the "Thanks!" or "OK, great." before its question."""
    return _LEADING_COURTESY.sub("", text)
