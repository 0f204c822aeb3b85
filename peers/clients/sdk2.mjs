// A client of the TypeScript SDK 2: either era, over streamable HTTP, HTTP+SSE or stdio.
import { installed } from './installed.mjs';
import { answers, authorized, capabilities, follow, plan } from './visit.mjs';

const { Client, SSEClientTransport, StreamableHTTPClientTransport } = installed(
  '@modelcontextprotocol/client',
);
const { StdioClientTransport } = installed('@modelcontextprotocol/client/stdio');

const TRANSPORTS = { http: StreamableHTTPClientTransport, sse: SSEClientTransport };
const MODES = { legacy: 'legacy', auto: 'auto', modern: { pin: '2026-07-28' } };

await follow(async () => {
  const client = new Client(
    { name: 'typescript-2', version: '1.0.0' },
    { capabilities, versionNegotiation: { mode: MODES[plan.era] } },
  );
  for (const [method, handler] of Object.entries(answers)) {
    client.setRequestHandler(method, handler);
  }
  const transport =
    plan.transport === 'stdio'
      ? new StdioClientTransport(plan.program)
      : new TRANSPORTS[plan.transport](new URL(plan.url), authorized);
  await client.connect(transport);
  const call = (request, options) => client.callTool(request, options);
  return { client, version: () => client.getNegotiatedProtocolVersion(), call };
});
