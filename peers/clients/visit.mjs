// What both generations of the TypeScript SDK do alike: follow a plan, and print what they saw.
//
// The plan is JSON on standard input:
//   { "url" or "program": { "command", "args", "env", "cwd" }, "transport", "era",
//     "token": what to send as `Authorization: Bearer TOKEN` over streamable HTTP,
//     "elicit": content to accept every question with,
//     "sample": text to answer models' work with, or a list of what the model says, { "content", "stopReason" }
//       or { "error": why it is not asked },
//     "sampling_tools": whether the model takes tools,
//     "steps": [{ "list": KIND } | { "call": TOOL, "with", "cancel": FILE that has to be there before the call is taken back }
//       | { "read": URI } | { "prompt": NAME, "with" } | { "together": [STEPS that are taken at once] }
//       | { "reconnect": true } | { "ended": FILE with the id of a process that has to end }] }
// Texts of a step have `${0.structuredContent.session_id}` for what an earlier step gave. A step with "fails" gives
// { "error": { "code", "message" } } if the server refuses it; without it, the client ends there.
// Printed is one line of JSON:
//   { "version", "server", "asked": [{ "method", "params" }], "seen": [one result for each step] }
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

export const plan = JSON.parse(readFileSync(0, 'utf8'));

/** Options of HTTP transports that send the token of the plan. */
export const authorized = plan.token && { requestInit: { headers: { Authorization: `Bearer ${plan.token}` } } };

const LISTS = {
  tools: ['listTools', 'tools', 'name'],
  prompts: ['listPrompts', 'prompts', 'name'],
  resources: ['listResources', 'resources', 'uri'],
  templates: ['listResourceTemplates', 'resourceTemplates', 'uriTemplate'],
};

/** How often, and with which pause in milliseconds, it is looked whether something has happened. */
const LOOKS = 400;
const BETWEEN_LOOKS = 50;

/** What the client says that it can do. */
export const capabilities = {
  ...(plan.elicit && { elicitation: {} }),
  ...(plan.sample && { sampling: plan.sampling_tools ? { tools: {} } : {} }),
};

const asked = [];

/** How the client answers what it is asked by servers: { METHOD: HANDLER }. */
export const answers = {
  ...(plan.elicit && {
    'elicitation/create': (request) => {
      asked.push({ method: 'elicitation/create', params: request.params });
      return { action: 'accept', content: plan.elicit };
    },
  }),
  ...(plan.sample && {
    'sampling/createMessage': (request) => {
      asked.push({ method: 'sampling/createMessage', params: request.params });
      const said =
        typeof plan.sample === 'string'
          ? { content: { type: 'text', text: plan.sample }, stopReason: 'endTurn' }
          : plan.sample.shift();
      if (said.error) {
        throw new Error(said.error);
      }
      return { role: 'assistant', model: 'peer', ...said };
    },
  }),
};

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

/** Whether it happens in time. */
async function happens(hasHappened) {
  for (let look = 0; look < LOOKS; look += 1) {
    if (hasHappened()) {
      return true;
    }
    await setTimeout(BETWEEN_LOOKS);
  }
  return false;
}

function isWritten(file) {
  return existsSync(file) && readFileSync(file, 'utf8').endsWith('\n');
}

function hasEnded(file) {
  try {
    process.kill(Number(readFileSync(file, 'utf8')), 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

async function callTool(call, step) {
  const progress = [];
  const taken = new AbortController();
  const options = { onprogress: (update) => progress.push(update), signal: taken.signal };
  if (step.cancel) {
    happens(() => isWritten(step.cancel)).then(() => taken.abort('not needed any more'));
  }
  try {
    const result = await call({ name: step.call, arguments: step.with }, options);
    return { ...result, progress };
  } catch (error) {
    if (taken.signal.aborted) {
      return { canceled: isWritten(step.cancel), progress };
    }
    throw error;
  }
}

/** A step in which what it takes from earlier ones is filled in. */
function filled(step, seen) {
  const text = JSON.stringify(step).replace(/\$\{([\w.]+)\}/g, (_, path) =>
    path.split('.').reduce((value, key) => value[key], seen),
  );
  return JSON.parse(text);
}

async function take({ client, call }, step) {
  try {
    if (step.together) {
      return await Promise.all(step.together.map((one) => take({ client, call }, one)));
    }
    if (step.list) {
      return await list(client, step.list);
    }
    if (step.call) {
      return await callTool(call, step);
    }
    if (step.ended) {
      return await happens(() => hasEnded(step.ended));
    }
    if (step.read) {
      return await client.readResource({ uri: step.read });
    }
    return await client.getPrompt({ name: step.prompt, arguments: step.with });
  } catch (error) {
    if (!step.fails) {
      throw error;
    }
    return { error: { code: error.code, message: error.message } };
  }
}

/** Takes the steps of the plan, and prints what was seen. `connect` gives a client, the version that it speaks, and
 * how it makes a call with options. */
export async function follow(connect) {
  const seen = [];
  let connection = await connect();
  for (const step of plan.steps) {
    if (step.reconnect) {
      await connection.client.close();
      connection = await connect();
      seen.push(null);
    } else {
      seen.push(await take(connection, filled(step, seen)));
    }
  }
  const { client, version } = connection;
  console.log(JSON.stringify({ version: version(), server: client.getServerVersion(), asked, seen }));
  await client.close();
}
