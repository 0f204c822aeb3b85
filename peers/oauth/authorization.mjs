// The authorization server: a real one, set up as strict as it comes, which tells what it did.
import { randomBytes } from 'node:crypto';
import querystring from 'node:querystring';

import './installed.mjs';
import { errorPage, serveInteraction, USER } from './pages.mjs';

const { exportJWK, exportPKCS8, generateKeyPair } = await import('jose');
const { errors, Provider } = await import('oidc-provider');

export const SCOPES = ['mcp:basic', 'mcp:write'];
const SIGNING = 'ES256';
const DAYS = 24 * 60 * 60;
const BODY_LIMIT = 64 * 1024;

// Any port will do: that is the rule for loopback addresses of native clients.
const REDIRECTS = ['127.0.0.1', 'localhost', '[::1]'].flatMap((host) =>
  ['/callback', '/oauth/callback', '/'].map((path) => `http://${host}${path}`),
);

async function preregistered() {
  const keys = await generateKeyPair(SIGNING, { extractable: true });
  const secret = randomBytes(24).toString('base64url');
  const interactive = {
    application_type: 'native',
    grant_types: ['authorization_code', 'refresh_token'],
    redirect_uris: REDIRECTS,
  };
  const machine = { grant_types: ['client_credentials'], response_types: [], redirect_uris: [] };
  return {
    // What the server knows.
    clients: [
      { ...interactive, client_id: 'public-client', token_endpoint_auth_method: 'none' },
      {
        ...interactive,
        client_id: 'confidential-client',
        client_secret: secret,
        grant_types: [...interactive.grant_types, ...machine.grant_types],
        token_endpoint_auth_method: 'client_secret_basic',
      },
      {
        ...machine,
        client_id: 'key-client',
        jwks: { keys: [await exportJWK(keys.publicKey)] },
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: SIGNING,
      },
    ],
    // What their owners know.
    credentials: {
      public: { client_id: 'public-client' },
      confidential: { client_id: 'confidential-client', client_secret: secret },
      key: {
        client_id: 'key-client',
        private_key_pem: await exportPKCS8(keys.privateKey),
        signing_algorithm: SIGNING,
      },
    },
  };
}

async function readBody(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > BODY_LIMIT) throw new Error('the body is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

export class AuthorizationServer {
  // Access tokens by their id, with the grant that they belong to and what became of them.
  tokens = new Map();
  // Documents that clients named by a URL are described by. Nothing else is ever fetched.
  documents = new Map();

  #refreshes = Promise.resolve();

  constructor({ issuer, resource, store, settings, ledger }) {
    Object.assign(this, { issuer, resource, store, settings, ledger });
  }

  static async start(parts, features) {
    const server = new AuthorizationServer(parts);
    const { clients, credentials } = await preregistered();
    const keys = await generateKeyPair(SIGNING, { extractable: true });
    server.credentials = credentials;
    server.publicKey = keys.publicKey;
    const key = { ...(await exportJWK(keys.privateKey)), alg: SIGNING, use: 'sig', kid: 'peer' };
    server.provider = server.#provider(clients, key, features);
    server.#observe();
    server.provider.use((context, next) => server.#around(context, next));
    server.#answer = server.provider.callback();
    return server;
  }

  #answer;

  #provider(clients, key, features) {
    const { settings } = this;
    return new Provider(this.issuer, {
      adapter: (name) => this.store.adapter(name),
      clients,
      clientDefaults: { id_token_signed_response_alg: SIGNING },
      clientBasedCORS: () => false,
      clockTolerance: 0,
      cookies: { keys: [randomBytes(24).toString('base64url')] },
      enabledJWA: {
        idTokenSigningAlgValues: [SIGNING],
        clientAuthSigningAlgValues: [SIGNING, 'RS256', 'PS256', 'EdDSA'],
      },
      features: {
        clientCredentials: { enabled: true },
        clientIdMetadataDocument: {
          enabled: features.cimd,
          ack: features.cimd ? 'draft-02' : undefined,
        },
        devInteractions: { enabled: false },
        dPoP: {
          enabled: features.dpop,
          nonceSecret: randomBytes(32),
          requireNonce: () => settings.dpopNonce,
        },
        registration: { enabled: features.registration },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: (context, indicator) => this.#resource(indicator),
          useGrantedResource: () => true,
        },
        revocation: {
          enabled: true,
          allowedPolicy: (context, client, token) => token.clientId === client.clientId,
        },
        rpInitiatedLogout: { enabled: false },
        userinfo: { enabled: false },
      },
      fetch: (url) => this.#document(url),
      findAccount: (context, id) =>
        id === USER.name ? { accountId: id, claims: () => ({ sub: id }) } : undefined,
      interactions: { url: (context, interaction) => `/interaction/${interaction.uid}` },
      issueRefreshToken: (context, client, source) =>
        client.grantTypeAllowed('refresh_token') &&
        (settings.refreshTokens === 'always' || source.scopes.has('offline_access')),
      jwks: { keys: [key] },
      pkce: { required: () => true },
      renderError: (context, details) => {
        context.type = 'html';
        context.body = errorPage(details);
      },
      rotateRefreshToken: true,
      scopes: ['openid', 'offline_access', ...SCOPES],
      ttl: {
        AccessToken: () => settings.accessTokenTtl,
        AuthorizationCode: 60,
        ClientCredentials: () => settings.accessTokenTtl,
        Grant: 14 * DAYS,
        IdToken: 3600,
        Interaction: 3600,
        RefreshToken: 14 * DAYS,
        Session: 14 * DAYS,
      },
    });
  }

  #resource(indicator) {
    if (indicator !== this.resource && !this.settings.resources.includes(indicator)) {
      throw new errors.InvalidTarget();
    }
    return {
      scope: SCOPES.join(' '),
      audience: indicator,
      accessTokenFormat: 'jwt',
      accessTokenTTL: this.settings.accessTokenTtl,
      jwt: { sign: { alg: SIGNING } },
    };
  }

  #document(url) {
    const document = this.documents.get(String(url));
    this.ledger.request({ kind: 'client_document', url: String(url), found: !!document });
    return document
      ? Response.json(document, { headers: { 'cache-control': 'max-age=30' } })
      : new Response('nobody here', { status: 404 });
  }

  #observe() {
    const { ledger, provider } = this;
    const issued = (token) =>
      this.tokens.set(token.jti, { grantId: token.grantId, state: 'valid' });
    provider.on('access_token.issued', issued);
    provider.on('client_credentials.issued', issued);
    provider.on('grant.revoked', (context, grantId) => this.#end('revoked', grantId));
    provider.on('registration_create.success', () => ledger.count(['registrations', 'success']));
    provider.on('registration_create.error', (context, error) =>
      ledger.count(['registrations', error.error ?? 'server_error']),
    );
    provider.on('authorization.success', () => ledger.count(['authorizations', 'success']));
    provider.on('authorization.error', (context, error) =>
      ledger.count(['authorizations', error.error ?? error.message]),
    );
    provider.on('grant.error', (context, error) => {
      if (error.error_detail === 'refresh token already used') ledger.count(['refresh_reuse']);
    });
    provider.on('server_error', (context, error) => console.error(error));
  }

  // Stands around every request to the authorization server.
  async #around(context, next) {
    if (context.method === 'POST' && context.path === '/token') return this.#token(context, next);
    if (context.method === 'GET' && context.path === '/auth') {
      const { client_id, redirect_uri, scope, resource, prompt, code_challenge_method } =
        context.query;
      this.ledger.count(['authorizations', 'started']);
      this.ledger.request({
        kind: 'authorization',
        client_id,
        redirect_uri,
        scope,
        resource,
        prompt,
        code_challenge_method,
      });
    }
    await next();
    if (context.path === '/token/revocation' && context.method === 'POST') {
      if (context.status === 200) this.ledger.count(['revocations']);
    }
    if (context.path === '/reg' && context.method === 'POST') {
      const { client_name, redirect_uris, scope, application_type, grant_types } =
        context.oidc.body ?? {};
      this.ledger.request({
        kind: 'registration',
        client_name,
        redirect_uris,
        scope,
        application_type,
        grant_types,
        token_endpoint_auth_method: context.oidc.body?.token_endpoint_auth_method,
      });
    }
    return undefined;
  }

  async #token(context, next) {
    const { ledger } = this;
    // The server takes a body that was read before.
    const form = querystring.parse(await readBody(context.req));
    context.req.body = form;
    const type = form.grant_type ?? 'none';
    const outcome =
      type === 'refresh_token'
        ? await this.#refresh(context, next)
        : await next().then(() => outcomeOf(context));
    ledger.request({
      kind: 'token',
      grant_type: type,
      outcome,
      client_id: context.oidc?.client?.clientId,
      client_authentication: context.oidc?.client?.clientAuthMethod,
      scope: form.scope,
      resource: form.resource,
      dpop: context.get('dpop') !== '',
    });
    ledger.count(['tokens', type, outcome]);
  }

  async #refresh(context, next) {
    const { ledger, settings } = this;
    if (settings.holdRefresh) {
      ledger.count(['refreshes_held']);
      while (settings.holdRefresh) await settings.change();
      ledger.count(['refreshes_held'], -1);
    }
    if (settings.refreshDelayMs > 0) {
      await new Promise((resolve) => setTimeout(resolve, settings.refreshDelayMs));
    }
    // Whoever asked may have been ended meanwhile. Then nothing was asked.
    if (context.req.socket.destroyed) {
      context.respond = false;
      return 'abandoned';
    }
    if (settings.failNextRefresh !== null) {
      const status = settings.failNextRefresh;
      settings.failNextRefresh = null;
      if (status === 0) cut(context);
      else {
        context.status = status;
        context.body = {
          error: status < 500 ? 'invalid_grant' : 'temporarily_unavailable',
          error_description: 'a test asked for this',
        };
      }
      return `failed_${status}`;
    }
    // One at a time: the server reads whether a token is used up and marks it in two steps, and
    // two requests at once would both get through.
    const turn = this.#refreshes.then(next);
    this.#refreshes = turn.catch(() => {});
    await turn;
    if (context.status === 200 && settings.loseNextRefresh) {
      settings.loseNextRefresh = false;
      cut(context);
      return 'lost';
    }
    return outcomeOf(context);
  }

  #end(state, grantId) {
    for (const token of this.tokens.values()) {
      const meant = grantId === undefined || token.grantId === grantId;
      if (meant && token.state === 'valid') token.state = state;
    }
  }

  // Access tokens that were issued so far count as expired.
  expireAll() {
    this.#end('expired');
  }

  // Nothing that was issued or granted so far is good for anything.
  revokeAll() {
    this.#end('revoked');
    this.store.forgetGrants();
  }

  async serve(request, response) {
    if (!request.url.startsWith('/interaction/')) return this.#answer(request, response);
    try {
      return await serveInteraction(this.provider, this.settings, request, response);
    } catch (error) {
      response.writeHead(400, { 'content-type': 'text/html; charset=utf-8' });
      return response.end(errorPage({ error: error.message, description: error.error_description }));
    }
  }
}

function outcomeOf(context) {
  return context.status === 200 ? 'success' : (context.body?.error ?? 'server_error');
}

// Ends the connection without an answer.
function cut(context) {
  context.respond = false;
  context.req.socket.destroy();
}
