"""A client of the Python SDK 2: either era, over streamable HTTP, HTTP+SSE or stdio.

Follows the plan on standard input and prints what it saw: peers/clients/visit.mjs says how both are written.
"""

from contextlib import asynccontextmanager

from mcp import Client, MCPError, types
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from visit import Visitor, main, plain

MODES = {"legacy": "legacy", "auto": "auto", "modern": "2026-07-28"}


class Second(Visitor):
    refusal = MCPError
    next_cursor = "next_cursor"
    lists = {
        "tools": ("list_tools", "tools", "name"),
        "prompts": ("list_prompts", "prompts", "name"),
        "resources": ("list_resources", "resources", "uri"),
        "templates": ("list_resource_templates", "resource_templates", "uri_template"),
    }

    def server(self):
        plan = self.plan
        if plan["transport"] == "stdio":
            return stdio_client(StdioServerParameters(**plan["program"]))
        if plan["transport"] == "sse":
            return sse_client(plan["url"])
        if "token" in plan:
            http = create_mcp_http_client(headers={"Authorization": f"Bearer {plan['token']}"})
            return streamable_http_client(plan["url"], http_client=http)
        return plan["url"]

    @asynccontextmanager
    async def connected(self):
        """It says that it can do what it has a callback for."""
        plan = self.plan
        tools = types.SamplingToolsCapability() if "sampling_tools" in plan else None
        async with Client(
            self.server(),
            mode=MODES[plan["era"]],
            elicitation_callback=self.elicit if "elicit" in plan else None,
            sampling_callback=self.sample if "sample" in plan else None,
            sampling_capabilities=types.SamplingCapability(tools=tools),
        ) as client:

            def about():
                server = client.server_info and plain(client.server_info)
                return {"version": client.protocol_version, "server": server}

            yield client, about


main(Second)
