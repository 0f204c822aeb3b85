// What both generations of the TypeScript SDK do alike: follow a plan, and print what they saw.
//
// The plan is JSON on standard input:
//   { "url" or "program": { "command", "args", "env", "cwd" }, "transport", "era",
//     "elicit": content to accept every question with, "sample": text to answer models' work with,
//     "steps": [{ "list": KIND } | { "call": TOOL, "with" } | { "read": URI } | { "prompt": NAME, "with" }] }
// Printed is one line of JSON:
//   { "version", "server", "asked": [{ "method", "params" }], "seen": [one result for each step] }
import { readFileSync } from 'node:fs';

export const plan = JSON.parse(readFileSync(0, 'utf8'));

const LISTS = {
  tools: ['listTools', 'tools', 'name'],
  prompts: ['listPrompts', 'prompts', 'name'],
  resources: ['listResources', 'resources', 'uri'],
  templates: ['listResourceTemplates', 'resourceTemplates', 'uriTemplate'],
};

/** What the client says that it can do. */
export const capabilities = {
  ...(plan.elicit && { elicitation: {} }),
  ...(plan.sample && { sampling: {} }),
};

/** What the client was asked by servers, and how it answers: { METHOD: HANDLER }. */
export function handlers() {
  const asked = [];
  const answer = (method, result) => (request) => {
    asked.push({ method, params: request.params });
    return result;
  };
  const accepted = { action: 'accept', content: plan.elicit };
  const content = { type: 'text', text: plan.sample };
  const sampled = { role: 'assistant', model: 'peer', content, stopReason: 'endTurn' };
  return {
    asked,
    answers: {
      ...(plan.elicit && { 'elicitation/create': answer('elicitation/create', accepted) }),
      ...(plan.sample && { 'sampling/createMessage': answer('sampling/createMessage', sampled) }),
    },
  };
}

async function list(client, kind) {
  const [method, field, key] = LISTS[kind];
  const found = [];
  let cursor;
  do {
    const page = await client[method](cursor ? { cursor } : undefined);
    found.push(...page[field].map((item) => item[key]));
    cursor = page.nextCursor;
  } while (cursor);
  return found;
}

/** Takes the steps of the plan, and prints what was seen. `call` makes a request with progress. */
export async function follow(client, { version, asked, call }) {
  const seen = [];
  for (const step of plan.steps) {
    if (step.list) {
      seen.push(await list(client, step.list));
    } else if (step.call) {
      const progress = [];
      const request = { name: step.call, arguments: step.with };
      const options = { onprogress: (update) => progress.push(update) };
      seen.push({ ...(await call(request, options)), progress });
    } else if (step.read) {
      seen.push(await client.readResource({ uri: step.read }));
    } else {
      seen.push(await client.getPrompt({ name: step.prompt, arguments: step.with }));
    }
  }
  console.log(JSON.stringify({ version: version(), server: client.getServerVersion(), asked, seen }));
  await client.close();
}
