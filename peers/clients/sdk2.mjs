// A client of the TypeScript SDK 2: either era, over streamable HTTP, HTTP+SSE or stdio.
import { installed } from './installed.mjs';
import { capabilities, follow, handlers, plan } from './visit.mjs';

const { Client, SSEClientTransport, StreamableHTTPClientTransport } = installed(
  '@modelcontextprotocol/client',
);
const { StdioClientTransport } = installed('@modelcontextprotocol/client/stdio');

const TRANSPORTS = { http: StreamableHTTPClientTransport, sse: SSEClientTransport };
const MODES = { legacy: 'legacy', auto: 'auto', modern: { pin: '2026-07-28' } };

const client = new Client(
  { name: 'typescript-2', version: '1.0.0' },
  { capabilities, versionNegotiation: { mode: MODES[plan.era] } },
);
const { asked, answers } = handlers();
for (const [method, handler] of Object.entries(answers)) {
  client.setRequestHandler(method, handler);
}
const transport =
  plan.transport === 'stdio'
    ? new StdioClientTransport(plan.program)
    : new TRANSPORTS[plan.transport](new URL(plan.url));
await client.connect(transport);
await follow(client, {
  version: () => client.getNegotiatedProtocolVersion(),
  asked,
  call: (request, options) => client.callTool(request, options),
});
