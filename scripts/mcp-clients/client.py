"""Talks to `spawnscope mcp` through the protocol's own client for Python, in the newest version and with a handshake. Arguments: the program,
and a directory for recordings."""

import asyncio
import json
import sys
import time

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

SPAWNSCOPE, DIRECTORY = sys.argv[1:]
LOOP = "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true $i; done"


async def call(client, tool, **arguments):
    result = await client.call_tool(tool, {"directory": DIRECTORY, **arguments})
    text = "\n".join(content.text for content in result.content)
    assert not result.is_error, text
    assert len(text) < 20_000, text
    return text


async def cancel(client):
    progress = []

    async def notice(value, _total, message):
        progress.append((value, message))

    arguments = {"directory": DIRECTORY, "command": ["sleep", "60"], "output": "cancelled.db"}
    running = asyncio.create_task(client.call_tool("record", arguments, progress_callback=notice))
    while len(progress) < 2:
        await asyncio.sleep(0.1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert [value for value, _ in progress] == [1, 2] and "record" in progress[0][1], progress


async def check(mode):
    server = StdioServerParameters(command=SPAWNSCOPE, args=["mcp", "--allow-record"])
    async with Client(stdio_client(server), mode=mode) as client:
        print(f"{mode}: {client.server_info.name}, protocol {client.protocol_version}")
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert tools == ["record", "report", "advise", "whatif", "diff", "import"], tools
        recorded = await call(client, "record", command=["bash", "-c", LOOP], output="loop.db")
        assert "recorded 11 launches to loop.db" in recorded, recorded
        assert json.loads(await call(client, "report", file="loop.db"))["launches"] == 11
        json.loads(await call(client, "advise", file="loop.db"))
        assert json.loads(await call(client, "diff", before=["loop.db"], after=["loop.db"]))["left_out"] is not None
        since = time.monotonic()
        await cancel(client)
        assert json.loads(await call(client, "report", file="loop.db"))["launches"] == 11
    assert time.monotonic() - since < 30, "the cancelled command has ended"


for each in ["auto", "legacy"]:
    asyncio.run(check(each))
