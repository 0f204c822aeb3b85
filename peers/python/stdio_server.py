"""A server of the Python SDK 2 on the standard streams, which speaks both protocol eras."""

from typing import Annotated

from mcp import types
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve, Sample
from pydantic import BaseModel

server = MCPServer("cocode-python-peer", version="1.0.0")


class Person(BaseModel):
    name: str


def who() -> Elicit[Person]:
    return Elicit("Who is there?", Person)


def thought(about: str) -> Sample:
    content = types.TextContent(type="text", text=f"Think about {about}.")
    return Sample([types.SamplingMessage(role="user", content=content)], max_tokens=10)


@server.tool()
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


@server.tool()
async def count(steps: int, ctx: Context) -> str:
    """Report progress once per step, then say how many steps there were."""
    for step in range(1, steps + 1):
        await ctx.report_progress(progress=step, total=steps)
    return f"counted to {steps}"


@server.tool()
def greet(person: Annotated[Person, Resolve(who)]) -> str:
    """Ask the user for a name, and greet them by it."""
    return f"Hello, {person.name}!"


@server.tool()
def think(about: str, answer: Annotated[types.CreateMessageResult, Resolve(thought)]) -> str:
    """Let the client's model think about something."""
    return f"{about}: {answer.content.text}"


@server.resource("peer://greeting")
def greeting() -> str:
    """One line of text."""
    return "hello from python"


@server.prompt()
def review(language: str) -> str:
    """Ask for a review of code in the language."""
    return f"Review this {language} code."


if __name__ == "__main__":
    server.run("stdio")
