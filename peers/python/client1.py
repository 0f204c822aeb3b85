"""A client of the Python SDK 1: handshakes only, over streamable HTTP or stdio.

Follows the plan on standard input and prints what it saw: peers/clients/visit.mjs says how both are written.
"""

from contextlib import asynccontextmanager

from mcp import ClientSession, McpError, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from visit import Visitor, main, plain


class First(Visitor):
    refusal = McpError
    next_cursor = "nextCursor"
    lists = {
        "tools": ("list_tools", "tools", "name"),
        "prompts": ("list_prompts", "prompts", "name"),
        "resources": ("list_resources", "resources", "uri"),
        "templates": ("list_resource_templates", "resourceTemplates", "uriTemplate"),
    }

    def __init__(self, plan):
        super().__init__(plan)
        # Of which request progress was last reported: the token of its progress is its id.
        self.heard = None

    async def hear(self, message):
        if isinstance(message, types.ServerNotification) and isinstance(message.root, types.ProgressNotification):
            self.heard = message.root.params.progressToken

    async def take_back(self, client, calling):
        """This generation forgets a call that nobody waits for, and leaves it to its user to tell the server."""
        # What was sent before the answer has been heard.
        await client.send_ping()
        params = types.CancelledNotificationParams(requestId=self.heard, reason="not needed any more")
        await client.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
        await super().take_back(client, calling)

    def server(self):
        if self.plan["transport"] == "stdio":
            return stdio_client(StdioServerParameters(**self.plan["program"]))
        token = self.plan.get("token")
        http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) if token else None
        return streamable_http_client(self.plan["url"], http_client=http)

    @asynccontextmanager
    async def connected(self):
        """It says that it can do what it has a callback for."""
        plan = self.plan
        tools = types.SamplingToolsCapability() if "sampling_tools" in plan else None
        async with self.server() as (read, write, *_), ClientSession(
            read,
            write,
            elicitation_callback=self.elicit if "elicit" in plan else None,
            sampling_callback=self.sample if "sample" in plan else None,
            sampling_capabilities=types.SamplingCapability(tools=tools),
            message_handler=self.hear,
        ) as client:
            agreed = await client.initialize()
            yield client, lambda: {"version": agreed.protocolVersion, "server": plain(agreed.serverInfo)}


main(First)
