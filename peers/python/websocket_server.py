"""The Python SDK's WebSocket server (subprotocol `mcp`) at /ws. The initialize era only.

Usage: websocket_server.py [PORT]
"""

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.websocket import websocket_server
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute

import loopback

server = Server("cocode-websocket-peer", version="1.0.0")

NUMBER = {"type": "integer"}
TEXT = {"type": "string"}


@server.list_tools()
async def list_tools():
    return [
        types.Tool(
            name="add",
            description="Add two whole numbers.",
            inputSchema={
                "type": "object",
                "properties": {"a": NUMBER, "b": NUMBER},
                "required": ["a", "b"],
            },
        ),
        types.Tool(
            name="echo",
            description="Return the text as it came.",
            inputSchema={"type": "object", "properties": {"text": TEXT}, "required": ["text"]},
        ),
    ]


@server.call_tool()
async def call_tool(name, arguments):
    match name:
        case "add":
            text = str(arguments["a"] + arguments["b"])
        case "echo":
            text = arguments["text"]
        case _:
            raise ValueError(f"unknown tool {name}")
    return [types.TextContent(type="text", text=text)]


async def connection(websocket):
    async with websocket_server(websocket.scope, websocket.receive, websocket.send) as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    loopback.serve(Starlette(routes=[WebSocketRoute("/ws", connection)]))
