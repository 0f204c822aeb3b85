#!/usr/bin/env node
// A peer for tests of authorization, on ports of 127.0.0.1 that are free: an authorization server,
// an MCP server that wants its tokens, and a port for the test to look and to interfere.
//
//   server.mjs [OPTIONS]     OPTIONS is a JSON object; see settings.mjs
//
// Prints one line of JSON that says where everything is, and ends when its stdin does.
import { once } from 'node:events';
import { createServer } from 'node:http';

// Standard output has one line, and whatever a package has to say is not it.
console.log = console.info = console.error;
console.warn = (text, ...rest) => {
  // The token endpoint is read before the server reads it, on purpose.
  if (!String(text).includes('already parsed request body')) console.error(text, ...rest);
};

const { AuthorizationServer } = await import('./authorization.mjs');
const { Guard } = await import('./guard.mjs');
const { Ledger } = await import('./ledger.mjs');
const { USER } = await import('./pages.mjs');
const { Resource } = await import('./resource.mjs');
const { readOptions } = await import('./settings.mjs');
const { Store } = await import('./store.mjs');

async function listen() {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, origin: `http://127.0.0.1:${server.address().port}` };
}

function answer(server, serve) {
  server.on('request', (request, response) => {
    serve(request, response).catch((error) => {
      console.error(error);
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end();
    });
  });
}

async function body(request) {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text === '' ? {} : JSON.parse(text);
}

// What the test may ask of the peer.
function administration({ authorization, ledger, settings, store }) {
  return {
    'GET /state': () => ({ ...ledger.state, settings }),
    // Answers when the number at a JSON pointer into the state is at least so much.
    'POST /wait': async ({ pointer, least }) => {
      await ledger.reached(pointer, least);
      return { ...ledger.state, settings };
    },
    'POST /settings': (changes) => {
      settings.apply(changes);
      return settings;
    },
    'POST /expire': () => authorization.expireAll() ?? {},
    'POST /revoke-all': () => authorization.revokeAll() ?? {},
    'POST /forget-clients': () => store.forgetClients() ?? {},
    'POST /client-document': ({ url, document }) => {
      authorization.documents.set(url, document);
      return {};
    },
  };
}

function serveAdministration(operations) {
  return async (request, response) => {
    const send = (status, value) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(value));
    };
    const operation = operations[`${request.method} ${request.url}`];
    if (!operation) return send(404, { error: `no ${request.method} ${request.url}` });
    try {
      return send(200, await operation(await body(request)));
    } catch (error) {
      return send(400, { error: error.message });
    }
  };
}

const { features, settings } = readOptions(process.argv[2]);
const [as, mcp, admin] = await Promise.all([listen(), listen(), listen()]);
const ledger = new Ledger();
const store = new Store();
const resource = `${mcp.origin}/mcp`;
const parts = { issuer: as.origin, resource, store, settings, ledger };
const authorization = await AuthorizationServer.start(parts, features);
const guarded = new Resource(new Guard(authorization));
answer(as.server, (request, response) => authorization.serve(request, response));
answer(mcp.server, (request, response) => guarded.serve(request, response));
const operations = administration({ authorization, ledger, settings, store });
answer(admin.server, serveAdministration(operations));

const announcement = {
  mcp: resource,
  issuer: as.origin,
  admin: admin.origin,
  resource,
  clients: authorization.credentials,
  user: USER,
};
process.stdout.write(`${JSON.stringify(announcement)}\n`);
process.stdin.on('end', () => process.exit(0));
process.stdin.resume();
