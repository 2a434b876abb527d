"""The function doc() of descriptions, which includes a docs block."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.compiler.render.functions import text_argument
from sqlstream.compiler.render.sandbox.environment import TemplateEnvironment
from sqlstream.compiler.render.sandbox.problems import TemplateProblem
from sqlstream.compiler.render.sandbox.template_values import TemplateFunction
from sqlstream.project.docs import FOLDERS, DocsBlock
from sqlstream.project.nearest import did_you_mean
from sqlstream.project.wording import quoted


def docs_function(environment: TemplateEnvironment, blocks: Sequence[DocsBlock]) -> TemplateFunction:
    """Returns doc(name), which also accepts doc(project, name) as dbt does. It returns a block's text unrendered."""
    texts = {block.name: block.text for block in blocks}

    def doc(name: object, second: object = None) -> str:
        wanted = text_argument("doc", name if second is None else second)
        if wanted not in texts:
            raise _unknown(wanted, [known for known in texts if known.isidentifier()])
        environment.budget.weigh(texts[wanted])
        return texts[wanted]

    return TemplateFunction("doc", doc)


def _unknown(name: str, known: Sequence[str]) -> TemplateProblem:
    *folders, last = (f"{folder}/" for folder in FOLDERS)
    example = f"add `{{% docs {name} %}} ... {{% enddocs %}}` to such a file"
    return TemplateProblem(
        "unknown-doc",
        f"there is no docs block {quoted(name)}",
        f"no Markdown file in {', '.join(folders)} or {last} has a block with that name",
        did_you_mean(name, known) if known else example,
    )
