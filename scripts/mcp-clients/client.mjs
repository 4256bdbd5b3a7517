// Talks to `spawnscope mcp` through the protocol's own client for TypeScript. Arguments: the program, and a directory for recordings.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, directory] = process.argv.slice(2);
const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command, args: ["mcp", "--allow-record"] }));
console.log(`handshake: ${client.getServerVersion().name}`);

async function call(name, given, options) {
  const result = await client.callTool({ name, arguments: { directory, ...given } }, undefined, options);
  const text = result.content.map((content) => content.text).join("\n");
  assert.ok(!result.isError && text.length < 20_000, text);
  return text;
}

const { tools } = await client.listTools();
assert.deepEqual(tools.map((tool) => tool.name), ["record", "report", "advise", "whatif", "diff", "import"]);
const loop = "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true $i; done";
assert.match(await call("record", { command: ["bash", "-c", loop], output: "loop.db" }), /recorded 11 launches to loop.db/);
assert.equal(JSON.parse(await call("report", { file: "loop.db" })).launches, 11);
assert.ok(JSON.parse(await call("advise", { file: "loop.db" })).left_out);

const progress = [];
const cancelled = new AbortController();
const endless = call("record", { command: ["sleep", "60"], output: "cancelled.db" }, {
  signal: cancelled.signal,
  onprogress: (each) => progress.push(each.progress) === 2 && cancelled.abort("enough"),
});
await assert.rejects(endless);
assert.deepEqual(progress, [1, 2]);
assert.equal(JSON.parse(await call("report", { file: "loop.db" })).launches, 11);
await client.close();
