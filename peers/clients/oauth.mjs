// A client of the TypeScript SDK 1 that is told nothing but an address: it finds out where to sign in, registers
// itself there, has its user sign in (`peers/oauth/visit.mjs`), and follows its plan.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { installed } from './installed.mjs';
import { capabilities, follow, plan } from './visit.mjs';

const { UnauthorizedError } = installed('@modelcontextprotocol/sdk/client/auth.js');
const { Client } = installed('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = installed(
  '@modelcontextprotocol/sdk/client/streamableHttp.js',
);

const VISIT = join(import.meta.dirname, '../oauth/visit.mjs');

/** What the SDK asks its application for. */
class Application {
  redirectUrl = 'http://127.0.0.1/callback';
  clientMetadata = {
    client_name: 'typescript-1',
    redirect_uris: [this.redirectUrl],
    application_type: 'native',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  code;

  clientInformation = () => this.client;
  saveClientInformation = (client) => (this.client = client);
  tokens = () => this.kept;
  saveTokens = (tokens) => (this.kept = tokens);
  codeVerifier = () => this.verifier;
  saveCodeVerifier = (verifier) => (this.verifier = verifier);

  async redirectToAuthorization(url) {
    const words = [VISIT, url.href, 'allow', '--stay'];
    const { stdout } = await promisify(execFile)(process.execPath, words);
    this.code = new URL(JSON.parse(stdout).redirect).searchParams.get('code');
  }
}

const application = new Application();

async function connect() {
  const client = new Client({ name: 'typescript-1', version: '1.0.0' }, { capabilities });
  const transport = new StreamableHTTPClientTransport(new URL(plan.url), {
    authProvider: application,
  });
  let agreed;
  const tell = transport.setProtocolVersion.bind(transport);
  transport.setProtocolVersion = (version) => {
    agreed = version;
    tell(version);
  };
  try {
    await client.connect(transport);
  } catch (error) {
    if (!(error instanceof UnauthorizedError) || !application.code) throw error;
    await transport.finishAuth(application.code);
    application.code = undefined;
    return connect();
  }
  const call = (request, options) => client.callTool(request, undefined, options);
  return { client, version: () => agreed, call };
}

await follow(connect);
