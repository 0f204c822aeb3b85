// A client of the TypeScript SDK 1: handshakes only, over streamable HTTP, HTTP+SSE, WebSocket or
// stdio.
import { installed } from './installed.mjs';
import { answers, authorized, capabilities, follow, plan } from './visit.mjs';

const { Client } = installed('@modelcontextprotocol/sdk/client/index.js');
const { SSEClientTransport } = installed('@modelcontextprotocol/sdk/client/sse.js');
const { StdioClientTransport } = installed('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = installed(
  '@modelcontextprotocol/sdk/client/streamableHttp.js',
);
const { WebSocketClientTransport } = installed('@modelcontextprotocol/sdk/client/websocket.js');
const { CreateMessageRequestSchema, ElicitRequestSchema } = installed(
  '@modelcontextprotocol/sdk/types.js',
);

const TRANSPORTS = {
  http: StreamableHTTPClientTransport,
  sse: SSEClientTransport,
  websocket: WebSocketClientTransport,
};
const SCHEMAS = {
  'elicitation/create': ElicitRequestSchema,
  'sampling/createMessage': CreateMessageRequestSchema,
};

await follow(async () => {
  const client = new Client({ name: 'typescript-1', version: '1.0.0' }, { capabilities });
  for (const [method, handler] of Object.entries(answers)) {
    client.setRequestHandler(SCHEMAS[method], handler);
  }
  const transport =
    plan.transport === 'stdio'
      ? new StdioClientTransport(plan.program)
      : new TRANSPORTS[plan.transport](new URL(plan.url), authorized);
  let agreed;
  // The client tells its transport, and nobody else, which version was agreed upon.
  const tell = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => {
    agreed = version;
    tell?.(version);
  };
  await client.connect(transport);
  const call = (request, options) => client.callTool(request, undefined, options);
  return { client, version: () => agreed, call };
});
