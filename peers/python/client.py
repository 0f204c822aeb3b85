"""A client of the Python SDK 2: either era, over streamable HTTP, HTTP+SSE or stdio.

Follows the plan on standard input and prints what it saw: peers/clients/visit.mjs says how both are written.
"""

import asyncio
import json
import sys

from mcp import Client, types
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client

MODES = {"legacy": "legacy", "auto": "auto", "modern": "2026-07-28"}
LISTS = {
    "tools": ("list_tools", "tools", "name"),
    "prompts": ("list_prompts", "prompts", "name"),
    "resources": ("list_resources", "resources", "uri"),
    "templates": ("list_resource_templates", "resource_templates", "uri_template"),
}


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def callbacks(plan, asked):
    """What the client answers to servers; it says that it can do what it has a callback for."""

    async def elicit(_context, params):
        asked.append({"method": "elicitation/create", "params": plain(params)})
        return types.ElicitResult(action="accept", content=plan["elicit"])

    async def sample(_context, params):
        asked.append({"method": "sampling/createMessage", "params": plain(params)})
        return types.CreateMessageResult(
            role="assistant",
            model="peer",
            content=types.TextContent(type="text", text=plan["sample"]),
            stop_reason="endTurn",
        )

    return {
        "elicitation_callback": elicit if "elicit" in plan else None,
        "sampling_callback": sample if "sample" in plan else None,
    }


async def list_all(client, kind):
    method, field, key = LISTS[kind]
    found, cursor = [], None
    while True:
        page = await getattr(client, method)(cursor=cursor)
        found += [str(getattr(item, key)) for item in getattr(page, field)]
        cursor = page.next_cursor
        if not cursor:
            return found


async def take(client, step):
    if "list" in step:
        return await list_all(client, step["list"])
    if "call" in step:
        progress = []

        async def report(done, total, message):
            update = {"progress": done, "total": total, "message": message}
            progress.append({key: value for key, value in update.items() if value is not None})

        result = await client.call_tool(step["call"], step.get("with"), progress_callback=report)
        return {**plain(result), "progress": progress}
    if "read" in step:
        return plain(await client.read_resource(step["read"]))
    return plain(await client.get_prompt(step["prompt"], step.get("with")))


def server_of(plan):
    if plan["transport"] == "stdio":
        return stdio_client(StdioServerParameters(**plan["program"]))
    return sse_client(plan["url"]) if plan["transport"] == "sse" else plan["url"]


async def follow(plan):
    asked = []
    async with Client(server_of(plan), mode=MODES[plan["era"]], **callbacks(plan, asked)) as client:
        seen = [await take(client, step) for step in plan["steps"]]
        server = client.server_info and plain(client.server_info)
        return {"version": client.protocol_version, "server": server, "asked": asked, "seen": seen}


print(json.dumps(asyncio.run(follow(json.load(sys.stdin)))))
