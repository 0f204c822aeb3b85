"""A crowd of clients of the Python SDK 2, which have no sessions, each with a token and a name of its own.

peers/clients/crowd.mjs says what it is told and what it prints.
"""

import asyncio
import json
import os
import ssl
import sys
import time

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

# How long a client waits for an answer, in seconds: longer than any call takes, so that waiting is an error.
PATIENCE = 20
# Between two calls of a client: people and models think.
THOUGHT = 0.05
# How long all clients may take after the word.
END = 90


class Crowd:
    def __init__(self, plan):
        self.plan = plan
        self.is_told = False
        self.deadline = float("inf")
        self.answered = set()
        self.seen = {"calls": 0, "wrong": [], "again": 0, "failures": [], "stuck": []}

    async def ask(self, client, name, number):
        if number % 3 == 2:
            arguments = {"duration": self.plan["seconds"], "steps": 4}
            await client.call_tool(self.plan["long"], arguments, read_timeout_seconds=PATIENCE)
            return
        message = f"{name} says {number}"
        result = await client.call_tool(self.plan["echo"], {"message": message}, read_timeout_seconds=PATIENCE)
        said = result.content[0].text
        if not said.endswith(message):
            self.seen["wrong"].append(f"{name} got: {said}")

    async def live(self, name, token, context):
        headers = {"Authorization": f"Bearer {token}"}
        timeout = httpx2.Timeout(PATIENCE, read=60)
        async with (
            httpx2.AsyncClient(headers=headers, verify=context, timeout=timeout) as http,
            Client(streamable_http_client(self.plan["url"], http_client=http), mode="2026-07-28") as client,
        ):
            await self.call_on_and_on(client, name)

    async def call_on_and_on(self, client, name):
        left, failing, number = self.plan["after"], None, 0
        while left > 0 and time.monotonic() < self.deadline:
            was_told = self.is_told
            try:
                await self.ask(client, name, number)
                self.seen["calls"] += 1
                failing = None
                left -= was_told
                self.note(name)
            except MCPError as error:
                if failing is None:
                    failing = {"name": name, "messages": []}
                    self.seen["failures"].append(failing)
                failing["messages"].append(str(error))
            number += 1
            await asyncio.sleep(THOUGHT)
        if left > 0:
            self.seen["stuck"].append(name)

    def note(self, name):
        if name in self.answered:
            return
        self.answered.add(name)
        if len(self.answered) == len(self.plan["clients"]):
            print("READY", flush=True)

    async def word(self):
        await asyncio.to_thread(sys.stdin.readline)
        self.is_told = True
        self.deadline = time.monotonic() + END

    async def run(self):
        context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
        waiting = asyncio.create_task(self.word())
        await asyncio.gather(*(self.live(one["name"], one["token"], context) for one in self.plan["clients"]))
        await waiting
        print(json.dumps(self.seen), flush=True)


asyncio.run(Crowd(json.loads(sys.stdin.readline())).run())
