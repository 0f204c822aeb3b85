"""What both generations of the Python SDK do alike: follow a plan, and print what they saw.

peers/clients/visit.mjs says how the plan and what is printed are written.
"""

import asyncio
import json
import os
import re
import sys

from mcp import types

# How often, and with which pause in seconds, it is looked whether something has happened.
LOOKS = 400
BETWEEN_LOOKS = 0.05

# What somebody answers who does not want a model to be asked.
REFUSED = -1


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def filled(step, seen):
    """A step in which what it takes from earlier ones is filled in."""

    def lookup(path):
        value = seen
        for key in path[1].split("."):
            value = value[int(key) if isinstance(value, list) else key]
        return value

    return json.loads(re.sub(r"\$\{([\w.]+)\}", lookup, json.dumps(step)))


async def happens(has_happened):
    """Whether it happens in time."""
    for _ in range(LOOKS):
        if has_happened():
            return True
        await asyncio.sleep(BETWEEN_LOOKS)
    return False


def is_written(file):
    if not os.path.exists(file):
        return False
    with open(file, encoding="ascii") as opened:
        return opened.read().endswith("\n")


def has_ended(file):
    with open(file, encoding="ascii") as opened:
        process = int(opened.read())
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


class Visitor:
    """A client that follows a plan. Each generation says how it connects, and what its requests are called."""

    # What the server refuses a request with.
    refusal = Exception

    def __init__(self, plan):
        self.plan = plan
        self.asked = []

    async def elicit(self, _context, params):
        self.asked.append({"method": "elicitation/create", "params": plain(params)})
        return types.ElicitResult(action="accept", content=self.plan["elicit"])

    async def sample(self, _context, params):
        self.asked.append({"method": "sampling/createMessage", "params": plain(params)})
        said = self.plan["sample"]
        if isinstance(said, str):
            said = {"content": {"type": "text", "text": said}, "stopReason": "endTurn"}
        else:
            said = said.pop(0)
        if "error" in said:
            return types.ErrorData(code=REFUSED, message=said["error"])
        takes_tools = "sampling_tools" in self.plan
        kind = types.CreateMessageResultWithTools if takes_tools else types.CreateMessageResult
        return kind.model_validate({"role": "assistant", "model": "peer", **said})

    async def call(self, client, step):
        """Makes a call, and takes it back where the plan says so."""
        progress = []

        async def report(done, total, message):
            update = {"progress": done, "total": total, "message": message}
            progress.append({key: value for key, value in update.items() if value is not None})

        calling = asyncio.ensure_future(client.call_tool(step["call"], step.get("with"), progress_callback=report))
        if "cancel" in step:
            canceled = await happens(lambda: is_written(step["cancel"]))
            await self.take_back(client, calling)
            return {"canceled": canceled and calling.cancelled(), "progress": progress}
        return {**plain(await calling), "progress": progress}

    async def take_back(self, _client, calling):
        calling.cancel()
        await asyncio.wait({calling})

    async def take(self, client, step):
        try:
            if "together" in step:
                return await asyncio.gather(*(self.take(client, one) for one in step["together"]))
            if "list" in step:
                return await self.list_all(client, step["list"])
            if "call" in step:
                return await self.call(client, step)
            if "ended" in step:
                return await happens(lambda: has_ended(step["ended"]))
            if "read" in step:
                return plain(await client.read_resource(step["read"]))
            return plain(await client.get_prompt(step["prompt"], step.get("with")))
        except self.refusal as error:
            if "fails" not in step:
                raise
            return {"error": {"code": error.error.code, "message": error.error.message}}

    async def list_all(self, client, kind):
        method, field, key = self.lists[kind]
        found, cursor = [], None
        while True:
            page = await getattr(client, method)(cursor=cursor)
            found += [str(getattr(item, key)) for item in getattr(page, field)]
            cursor = getattr(page, self.next_cursor)
            if not cursor:
                return found

    async def follow(self):
        seen = []
        steps = list(self.plan["steps"])
        while True:
            async with self.connected() as (client, about):
                while steps and "reconnect" not in steps[0]:
                    seen.append(await self.take(client, filled(steps.pop(0), seen)))
                said = {**about(), "asked": self.asked, "seen": seen}
            if not steps:
                return said
            steps.pop(0)
            seen.append(None)


def main(visitor):
    print(json.dumps(asyncio.run(visitor(json.load(sys.stdin)).follow())))
