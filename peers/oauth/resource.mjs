// The MCP server behind the guard: a real one of the TypeScript SDK, with sessions.
import { randomUUID } from 'node:crypto';

import './installed.mjs';

const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js');
const { StreamableHTTPServerTransport } = await import(
  '@modelcontextprotocol/sdk/server/streamableHttp.js'
);
const { z } = await import('zod');

const BODY_LIMIT = 1024 * 1024;

// The scope that every request needs, and tools that need more.
const BASIC_SCOPE = 'mcp:basic';
const TOOL_SCOPES = { write_note: 'mcp:write' };

function toolServer() {
  const server = new McpServer({ name: 'guarded-notes', version: '1.0.0' });
  const text = (value) => ({ content: [{ type: 'text', text: value }] });
  server.registerTool(
    'whoami',
    { description: 'Says whose access token the call came with, and what it allows' },
    ({ authInfo }) => {
      const { clientId, scopes, extra } = authInfo;
      const identity = { sub: extra.subject, scopes, client_id: clientId, bound: extra.bound };
      return { ...text(JSON.stringify(identity)), structuredContent: identity };
    },
  );
  server.registerTool(
    'write_note',
    { description: 'Writes a note', inputSchema: { note: z.string() } },
    ({ note }) => text(`written: ${note}`),
  );
  server.registerTool(
    'slow',
    {
      description: 'Takes its time and tells how far it is',
      inputSchema: { ms: z.number().int().min(0), steps: z.number().int().min(1).default(4) },
    },
    async ({ ms, steps }, { _meta, sendNotification, signal }) => {
      for (let step = 1; step <= steps; step += 1) {
        await new Promise((resolve) => setTimeout(resolve, ms / steps));
        signal.throwIfAborted();
        if (_meta?.progressToken !== undefined) {
          const params = { progressToken: _meta.progressToken, progress: step, total: steps };
          await sendNotification({ method: 'notifications/progress', params });
        }
      }
      return text(`done in ${steps} steps`);
    },
  );
  return server;
}

async function readJson(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > BODY_LIMIT) throw new Error('the body is too large');
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString());
}

function fail(response, status, message) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32600, message } }));
}

export class Resource {
  #sessions = new Map();

  constructor(guard) {
    this.guard = guard;
    this.path = new URL(guard.resource).pathname;
  }

  async serve(request, response) {
    const [path] = request.url.split('?');
    if (path === this.guard.metadataPath && request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'application/json' });
      return response.end(JSON.stringify(this.guard.metadata()));
    }
    if (path !== this.path) {
      response.writeHead(404);
      return response.end();
    }
    const sender = await this.guard.admit(request, response);
    if (!sender) return undefined;
    let body;
    if (request.method === 'POST') {
      try {
        body = await readJson(request);
      } catch {
        return fail(response, 400, 'the body is not JSON');
      }
    }
    for (const scope of neededScopes(body)) {
      if (!this.guard.permit(sender, scope, response)) return undefined;
    }
    return this.#deliver(request, response, body, sender);
  }

  async #deliver(request, response, body, sender) {
    const id = request.headers['mcp-session-id'];
    const session = id === undefined ? await this.#open(sender) : this.#sessions.get(id);
    // A session of somebody else is as unknown as one that never was.
    if (session?.subject !== sender.subject) return fail(response, 404, 'unknown session');
    const { token, clientId, scopes, subject, bound } = sender;
    request.auth = { token, clientId, scopes, extra: { subject, bound } };
    return session.transport.handleRequest(request, response, body);
  }

  // A new session, which is kept if its first request turns out to be a good one.
  async #open({ subject }) {
    const session = { subject };
    session.transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => this.#sessions.set(id, session),
      onsessionclosed: (id) => this.#sessions.delete(id),
    });
    await toolServer().connect(session.transport);
    return session;
  }
}

function neededScopes(body) {
  const messages = Array.isArray(body) ? body : [body];
  const called = messages
    .filter((message) => message?.method === 'tools/call')
    .map((message) => TOOL_SCOPES[message.params?.name]);
  return [BASIC_SCOPE, ...called.filter((scope) => scope !== undefined)];
}
