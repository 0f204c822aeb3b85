// A crowd of clients of the TypeScript SDK 1, which have sessions, each with a token and a name of its own.
//
// What it is told and what it prints is the same for peers/python/crowd.py, whose clients have no sessions.
// The plan is one line of JSON on standard input:
//   { "url", "clients": [{ "name", "token" }], "echo": TOOL, "long": TOOL, "seconds": how long each call of "long" takes,
//     "after": calls that each client has to be answered after the word }
// Every client calls on and on: the tool that repeats a text, with a text that nobody else sends, and every third time the
// one that takes long. When all of them were answered once, the line "READY" is printed. The next line on standard
// input is the word: from then on each client needs so many answers, and goes on until it has them. Then one line of JSON:
//   { "calls", "wrong": [answers that were meant for somebody else], "again": clients that had to begin a new session,
//     "failures": [{ "name", "messages": [of calls that failed one after the other] }],
//     "stuck": [who was not answered often enough] }
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { installed } from './installed.mjs';

const { Client } = installed('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = installed(
  '@modelcontextprotocol/sdk/client/streamableHttp.js',
);

/** How long a client waits for an answer: longer than any call takes, so that waiting is an error. */
const PATIENCE = 20_000;
/** Between two calls of a client: people and models think. */
const THOUGHT = 50;
/** How long all clients may take after the word. */
const END = 90_000;

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const plan = JSON.parse((await lines.next()).value);

let isTold = false;
const deadline = { at: Infinity };
const seen = { calls: 0, wrong: [], again: 0, failures: [], stuck: [] };

async function connect({ name, token }) {
  const client = new Client({ name, version: '1.0.0' });
  const transport = new StreamableHTTPClientTransport(new URL(plan.url), {
    requestInit: { headers: { Authorization: `Bearer ${token}` } },
  });
  await client.connect(transport);
  return { client, transport };
}

async function ask(client, name, number) {
  const options = { timeout: PATIENCE, onprogress: () => {} };
  if (number % 3 === 2) {
    const request = { name: plan.long, arguments: { duration: plan.seconds, steps: 4 } };
    await client.callTool(request, undefined, options);
    return;
  }
  const message = `${name} says ${number}`;
  const result = await client.callTool({ name: plan.echo, arguments: { message } }, undefined, options);
  const said = result.content[0].text;
  if (!said.endsWith(message)) {
    seen.wrong.push(`${name} got: ${said}`);
  }
}

async function live(one, answered) {
  let { client, transport } = await connect(one);
  const first = transport.sessionId;
  let left = plan.after;
  let failing;
  for (let number = 0; left > 0 && Date.now() < deadline.at; number += 1) {
    const wasTold = isTold;
    try {
      await ask(client, one.name, number);
      seen.calls += 1;
      failing = undefined;
      left -= wasTold ? 1 : 0;
      answered();
    } catch (error) {
      if (!failing) {
        failing = { name: one.name, messages: [] };
        seen.failures.push(failing);
      }
      failing.messages.push(String(error.message));
    }
    await pause(THOUGHT);
  }
  if (left > 0) {
    seen.stuck.push(one.name);
  }
  seen.again += transport.sessionId === first ? 0 : 1;
  await client.close();
}

let n_answered = 0;
const everybody = plan.clients.map((one) => {
  let isFirst = true;
  return live(one, () => {
    n_answered += isFirst ? 1 : 0;
    if (isFirst && n_answered === plan.clients.length) {
      console.log('READY');
    }
    isFirst = false;
  });
});
lines.next().then(() => {
  isTold = true;
  deadline.at = Date.now() + END;
});
await Promise.all(everybody);
console.log(JSON.stringify(seen));
process.exit(0);
