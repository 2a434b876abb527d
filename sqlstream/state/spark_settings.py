"""Spark's settings in a ledger: which of them count, and how they have changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlstream.compiler.digest import digest
from sqlstream.project.formats.formats import FORMATS
from sqlstream.project.secret_text import SECRET_PREFIX
from sqlstream.state.ledger import SINK, SOURCE, QueryIdentity
from sqlstream.state.signature.harmless import READERS, Readers, is_harmless, is_harmless_option, is_shown, keeps_types
from sqlstream.state.signature.operators import STATIC
from sqlstream.state.signature.signature import StateSignature, shown_source, source_of

SOURCE_EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
"""With this setting, a checkpoint identifies sources by name, otherwise by their order."""

FROZEN_SETTINGS = (
    "spark.sql.shuffle.partitions",
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.multipleWatermarkPolicy",
)
"""Settings that a checkpoint fixes with its first batch, so a resumed query gets the values from the ledger."""

TIME_ZONE = "spark.sql.session.timeZone"

ANSI = "spark.sql.ansi.enabled"
"""With this setting, an expression fails where it otherwise returns null or a wrong number."""

CASE_SENSITIVE = "spark.sql.caseSensitive"
"""With this setting, names of columns that differ only in letter case are different names."""

RESULT_DEFAULTS = {
    ANSI: "true",
    CASE_SENSITIVE: "false",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
}
"""Settings whose value the ledger always has, also if the target does not set them, and Spark's defaults."""

RESULT_SETTINGS = tuple(RESULT_DEFAULTS)

HADOOP = "spark.hadoop."
"""The start of the names of settings of Hadoop, which reads files and catalogs."""

SUBSTITUTE = "spark.sql.variable.substitute"
"""With this setting, Spark replaces `${...}` in SQL by settings, environment variables and properties of Java."""

OWN_DEFAULTS = {
    # run the compiled text as it is: Spark would replace ${...} by its variables and the environment
    SUBSTITUTE: "false",
    # a filter in the parser hides rows from the count of rows read
    "spark.sql.json.filterPushdown.enabled": "false",
    "spark.sql.csv.filterPushdown.enabled": "false",
}
"""What sqlstream's sessions have instead of Spark's default, unless the target sets it."""

ONLY_SPARK = "a value that only Spark knows"
"""What `plan` has instead of a value of `${...}` that is neither in the target nor in the environment."""

LEGACY = "spark.sql.legacy."
"""The start of the names of settings that an earlier sqlstream recorded."""

FindValue = Callable[[str, str], str]
"""Returns the value of a name of a kind: a setting (``), a variable (`env`) or a property of Java (`system`)."""


@dataclass(frozen=True)
class SettingChange:
    """A setting of Spark that has changed; None is Spark's default."""

    name: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        if self.name == TIME_ZONE:
            return f"the time zone changed from {self.before} to {self.after}"
        if self.is_substituted:
            if self.after == ONLY_SPARK:
                return f"only Spark knows the value of {self.name} (before: {self.before})"
            return f"the value of {self.name} changed from {self.before or 'an unknown one'} to {self.after}"
        if self.before is None:
            return f"the setting {self.name} was added with the value {self.after}"
        if self.after is None:
            return f"the setting {self.name} (before: {self.before}) was removed"
        return f"the setting {self.name} changed from {self.before} to {self.after}"

    @property
    def is_substituted(self) -> bool:
        """Whether it is the value of a `${...}` in SQL."""
        return self.name.startswith("${")

    @property
    def is_of_python(self) -> bool:
        """Whether only Python code can read the setting."""
        return not self.is_substituted and is_harmless(self.name)


def declared_settings(
    spark: Mapping[str, object],
    always: Collection[str] = (*RESULT_SETTINGS, *FROZEN_SETTINGS, TIME_ZONE, SOURCE_EVOLUTION),
) -> dict[str, str]:
    """Returns the settings of a target that can change results, also those that only Python code reads, with secrets as
    the names of their variables. Those with a value in every ledger (`always`) are not among them.
    """
    names = (name for name in sorted(spark) if name not in always and not is_harmless(name, python=True))
    return {name: _text(spark[name]) for name in names if not is_credential(name)}


def substituted(
    texts: Iterable[str], spark: Mapping[str, object], env: Mapping[str, str], find: FindValue | None = None
) -> dict[str, str]:
    """Returns the values that Spark puts into SQL `texts`, by the texts that they replace, also those within values.
    Secrets are digests, or the names of their variables. Without `find`, which asks Spark, they are those of the target
    with the settings `spark` and of the environment `env`, or `ONLY_SPARK`.

    See ConfigReader and VariableSubstitution in Spark.
    """
    found: dict[str, str] = {}
    if str(spark.get(SUBSTITUTE, OWN_DEFAULTS[SUBSTITUTE])).lower() != "true":
        return found
    left = list(texts)
    while left:
        for reference in _REFERENCE.finditer(left.pop()):
            text, kind, name = reference[0], reference[1] or "", reference[2]
            # A reference that was found before is not followed again: values can name each other in a circle.
            if text in found or (kind not in _OF_SETTINGS and kind not in ("env", "system")):
                continue
            value = _found(kind, name, spark, env, find)
            is_secret = is_credential(name) or (kind == "env" and name.startswith(SECRET_PREFIX))
            if value is not None:
                left.append(value)
            found[text] = (
                ONLY_SPARK
                if value is None
                # A secret of the target is only a reference to its variable here, which may be shown.
                else f"digest {digest(value)}"
                if is_secret and "{{ env_var(" not in value
                else without_credentials(value)
            )
    return dict(sorted(found.items()))


_REFERENCE = re.compile(r"\$\{(?:(\w+?):)?(\S+?)\}", re.ASCII)
_OF_SETTINGS = ("", "spark", "sparkconf", "hivevar", "hiveconf")


def _found(
    kind: str, name: str, spark: Mapping[str, object], env: Mapping[str, str], find: FindValue | None
) -> str | None:
    is_setting = kind in _OF_SETTINGS
    given = spark.get(name) if is_setting else None
    # A secret of the target stays a reference. Spark would return its value.
    if find is not None and (given is None or isinstance(given, str)):
        return find("" if is_setting else kind, name)
    if kind == "env" and not name.startswith(("SPARK_", "PYSPARK_")):  # sqlstream and Spark set these
        return env.get(name, f"${{env:{name}}}")
    # A checkpoint fixes these, so the value in the target may not be the one in effect.
    return None if given is None or name in (*FROZEN_SETTINGS, SOURCE_EVOLUTION) else str(given)


def is_credential(name: str) -> bool:
    """Returns whether a setting or an option can have a password, by its name, so that the ledger must not keep it."""
    return _CREDENTIAL.search(name.lower()) is not None


_CREDENTIAL = re.compile(
    "passw|pwd|passphrase|secret|token|credential|(?:api|account|access|private).?key|connection.?string|jaas|[.]auth"
)


def without_credentials(text: str) -> str:
    """Returns the value of an option or a setting as a ledger can keep it: without the user and the password in an
    address, and without its parameters that only say how to connect.
    """
    if _PAIRS.match(text):
        return _SECRET_PAIR.sub("", text)
    if not _ADDRESS.match(text):
        return text
    address, *parameters = _MARK.split(_SECRET_PARAMETER.sub("", _USER.sub(r"\1\2", text)))
    kept = [each for each in parameters if each and not is_harmless_option(each.partition("=")[0], static=True)]
    return "?".join([address, *(["&".join(kept)] if kept else [])])


_PAIRS, _ADDRESS = re.compile(r"\s*\w+\s*="), re.compile(r"\s*(?:jdbc:|[\w+.-]+://)")
"""How a list of words and values begins, such as `host=db dbname=shop`, and how an address begins."""

_USER = re.compile(r"(//)[^/?;]*@|(:thin:)[^?;]*@")
"""The user and the password in front of a host."""

_MARK = re.compile("[?&;]")
"""What is in front of a parameter of an address."""

_SECRET_NAME = rf"(?i:[\w.]*(?:{_CREDENTIAL.pattern})[\w.]*)"
_SECRET_PAIR = re.compile(rf"{_SECRET_NAME}\s*=\s*(?:'[^']*'|[^\s;]*)")
_SECRET_PARAMETER = re.compile(rf"(?<=[?&;(,:]){_SECRET_NAME}=" r"(?:\{\{.*?\}\}|\{(?:[^}]|\}\})*\}|[^&;)]*)")
"""A secret in a list, and in an address: the name of a variable, in braces as for SQL Server, or plain."""


def _text(value: object) -> str:
    text = without_credentials(str(value))
    return text.lower() if text.lower() in ("true", "false") else text


def changed_settings(old: QueryIdentity, new: QueryIdentity) -> tuple[SettingChange, ...]:
    """Returns the settings that differ and can change results. Of an early ledger, only those that it has."""
    found = []
    for name in (TIME_ZONE, *RESULT_SETTINGS):
        before, after = old.settings.get(name), new.settings.get(name)
        if before != after and None not in (before, after):
            found.append(SettingChange(name, before, after))
    found += _changed_declared(old, new)
    # An earlier ledger does not have the settings that only Python code reads.
    if not _runs_python(new) or old.substituted is None:
        found = [change for change in found if not change.is_of_python]
    for name, value in (new.substituted or {}).items():
        before = None if old.substituted is None else old.substituted.get(name, value)
        if before != value:  # without a value before, the SQL has changed
            found.append(SettingChange(name, before, value))
    return tuple(found)


def _changed_declared(old: QueryIdentity, new: QueryIdentity) -> Iterator[SettingChange]:
    """Yields the settings that differ, without those that each ledger has."""
    before_all = {name: value for name, value in old.settings.items() if name.startswith(LEGACY)}
    before_all = {name: value for name, value in before_all.items() if name not in RESULT_SETTINGS}
    before_all = dict(old.declared or before_all)
    after_all = dict(new.declared or {})
    if old.inherited is None:  # an earlier sqlstream knew none of the settings of Hadoop, nor those from elsewhere
        after_all = {name: value for name, value in after_all.items() if not name.startswith(HADOOP)}
    else:
        before_all = {**old.inherited, **before_all}
        after_all = {**(old.inherited if new.inherited is None else new.inherited), **after_all}
    if old.declared is None:
        after_all = {name: value for name, value in after_all.items() if name.startswith(LEGACY)}
    for name in sorted({*before_all, *after_all}.difference(RESULT_SETTINGS)):
        before, after = before_all.get(name), after_all.get(name)
        if before is not None:
            before = without_credentials(before)  # an earlier sqlstream kept addresses as they were
        if before != after:
            yield SettingChange(name, before, after)


def _runs_python(identity: QueryIdentity) -> bool:
    """Returns whether Python code computes rows of a query or reads them."""
    return any(not name.startswith(f"{SINK} ") for name in identity.code or {})


def reads_python(identity: QueryIdentity) -> bool:
    """Returns whether a source of a query is Python code."""
    return any(name.startswith(f"{SOURCE} ") for name in identity.code or {})


def changed_columns(old: QueryIdentity, new: QueryIdentity, *, is_stored: bool) -> SettingChange | None:
    """Returns the first changed setting with which the query can have other columns, or another state;
    None without one. Types matter only if the sink of the query stores them (`is_stored`).
    """
    changes = changed_settings(old, new)
    return next(
        (
            change
            for change in changes
            if change.is_substituted or change.is_of_python or (is_stored and not keeps_types(change.name))
        ),
        None,
    )


def changes_state(change: SettingChange, signature: StateSignature, identity: QueryIdentity) -> bool:
    """Returns whether the state of a query can have other content with the other value of a setting. `signature` and
    `identity` are those of the changed query. The compared plans show all that some settings change.
    """
    if not signature.operators or is_shown(change.name) or change.is_substituted or change.is_of_python:
        return False
    if change.name == TIME_ZONE:  # the plan has the zone of expressions; of texts in sources see `reads_times_as_text`
        return False
    readers = next((each for start, each in READERS.items() if change.name.startswith(start)), None)
    words = 1 if change.name.startswith(HADOOP) else 3  # the values of Kafka have formats, too
    formats = [text.lower().split()[:words] for text in identity.contents.values() if text]
    return readers is None or _can_read(readers, formats, signature)


def _can_read(readers: Readers, formats: Sequence[Sequence[str]], signature: StateSignature) -> bool:
    """Returns whether an input, by its formats, or an expression that decides the state is among the readers."""
    texts = [text for each in signature.operators for part in each.parts.values() for text in part]
    inputs = [line for line in signature.input_lines if source_of(line) in signature.sources]
    inputs += [text for text in texts if STATIC in text]  # in subqueries
    is_read = any(readers.formats.intersection(words) or words[0] not in FORMATS for words in formats)
    # a word follows the name of a column, which can be that of a type
    if readers.formats and is_read and any(re.search(rf"\b(?:{readers.types})\b(?! \w)", text) for text in inputs):
        return True
    functions = {*signature.functions, *(("python",) if signature.calls_python else ())}
    if readers.functions is not None:
        # Spark calls the code of newer functions by its name, which does not tell what it reads
        return bool({*readers.functions, "invoke", "staticinvoke"} & functions)
    has_decimals = any("decimal" in text for text in (*signature.input_lines, *texts))
    return not (readers.free if has_decimals else readers.free | readers.free_without_decimals).issuperset(functions)


def reads_times_as_text(signature: StateSignature, identity: QueryIdentity) -> str | None:
    """Returns the first input whose times the state has, and whose texts can be without a zone, so that Spark reads
    them in the zone of the session. None without one.
    """
    streams = {shown_source(use.name) for use in identity.sources}
    texts = (text for each in signature.operators for part in each.parts.values() for text in part)
    static = any(STATIC in text and _TIME.search(text) for text in (*signature.input_lines, *texts))
    for name, text in sorted(identity.contents.items()):
        words = text.lower().split()
        if (
            (signature.reads(name, "timestamp") if name in streams else static)
            and _TEXT_FORMATS.intersection(words[:3])
            and "timezone" not in words
        ):
            return name
    return None


_TEXT_FORMATS = frozenset({"json", "csv", "xml", "text"})
_TIME = re.compile(r"\btimestamp\b")
