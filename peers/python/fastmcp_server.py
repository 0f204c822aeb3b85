"""A FastMCP server over streamable HTTP at /mcp: both protocol eras on one endpoint.

Usage: fastmcp_server.py [PORT]
"""

from fastmcp import Context, FastMCP

import loopback

server = FastMCP("cocode-fastmcp-peer", version="1.0.0")


@server.tool
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


@server.tool
def echo(text: str) -> str:
    """Return the text as it came."""
    return text


@server.tool
def fail(message: str) -> str:
    """Report the message as a tool error."""
    raise ValueError(message)


@server.tool
async def count(steps: int, ctx: Context) -> str:
    """Report progress once per step, then say how many steps there were."""
    for step in range(1, steps + 1):
        await ctx.report_progress(progress=step, total=steps)
    return f"counted to {steps}"


@server.resource("peer://greeting")
def greeting() -> str:
    """One line of text."""
    return "hello from fastmcp"


@server.prompt
def review(language: str) -> str:
    """Ask for a review of code in the language."""
    return f"Review this {language} code."


if __name__ == "__main__":
    loopback.serve(server.http_app(path="/mcp"))
