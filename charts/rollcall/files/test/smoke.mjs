// What `helm test` runs in a pod: goes through the registry's API the way a program does, and finds in it what only the operator puts
// there; knocks at the gateway, for which it has no client; and asks communication, payment and federation how they are, without sending
// or paying anything. Ends with 1 and the reason when something does not work.
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';

const startedAt = performance.now();
const { REGISTRY_URL, GATEWAY_URL, EXPECTED_SERVICE, TOKEN_FILE, REDIS_URL, DEADLINE_SECONDS = '180' } = process.env;
/** Base URLs in the cluster: `communication=http://… payment=http://…`. */
const { SERVICE_URLS = '', FEDERATION_URL } = process.env;
const token = TOKEN_FILE === undefined ? undefined : (await readFile(TOKEN_FILE, 'utf8')).trim();

async function call(method, path, body) {
  const response = await fetch(REGISTRY_URL + path, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(10_000),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
}

/** Tries until it is so: other replicas learn of a write a moment later, and an installation may still be starting. */
async function eventually(what, attempt) {
  let last;
  while (performance.now() - startedAt < Number(DEADLINE_SECONDS) * 1000) {
    try {
      last = await attempt();
      if (last === true) {
        console.log(`ok: ${what}`);
        return;
      }
    } catch (error) {
      // A message about a header would quote the token.
      last = error.cause?.message ?? error.name;
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  throw new Error(`not so: ${what}; last seen: ${JSON.stringify(last)}`);
}

function answersWith(method, path, { status, body }) {
  return async () => {
    const answer = await call(method, path, body);
    return answer.status === status ? true : answer;
  };
}

/** As Redis' protocol has it. */
function command(parts) {
  return `*${parts.length}\r\n${parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`).join('')}`;
}

function redisAnswers(url) {
  const { hostname, port, username, password } = new URL(url);
  const words = ['AUTH', ...(username === '' ? [] : [decodeURIComponent(username)]), decodeURIComponent(password)];
  return new Promise((resolve, reject) => {
    let heard = '';
    const socket = connect({ host: hostname, port: Number(port === '' ? 6379 : port), timeout: 5000 });
    socket.on('error', reject);
    socket.on('timeout', () => socket.destroy(new Error('no answer')));
    socket.on('connect', () => socket.write((password === '' ? '' : command(words)) + command(['PING'])));
    socket.on('data', (chunk) => {
      heard += String(chunk);
      if (heard.includes('+PONG') || heard.includes('-')) {
        socket.destroy();
        resolve(heard.includes('+PONG') ? true : heard);
      }
    });
    socket.on('close', () => reject(new Error('closed')));
  });
}

const service = `helm-test-${randomBytes(4).toString('hex')}`;
const registration = { service_name: service, service_url: 'http://helm-test.invalid', capabilities: ['rest'] };

await eventually('the registry reaches the API server and PostgreSQL', async () => {
  const { status, body } = await call('GET', '/health');
  return (status === 200 && body.store === 'connected' && body.database === 'connected') || body;
});
await eventually('a program registers', answersWith('POST', '/services/register', { status: 200, body: registration }));
try {
  await eventually('it is found', answersWith('GET', `/services/${service}`, { status: 200 }));
  await eventually('its heartbeat is taken', answersWith('POST', `/services/${service}/heartbeat`, { status: 200 }));
  await eventually('the list names it', async () => {
    const { body } = await call('GET', `/services?prefix=${service}`);
    return body.total === 1 || body;
  });
} finally {
  await call('DELETE', `/services/${service}`).catch(() => undefined);
}
await eventually('it is gone', answersWith('GET', `/services/${service}`, { status: 404 }));
await eventually('the history answers', answersWith('GET', '/updates/history', { status: 200 }));
if (EXPECTED_SERVICE !== undefined) {
  const found = answersWith('GET', `/services/${EXPECTED_SERVICE}`, { status: 200 });
  await eventually('the operator has registered an annotated Service', found);
}
if (GATEWAY_URL !== undefined) {
  const get = async (path, headers = {}) => {
    const response = await fetch(GATEWAY_URL + path, { headers, signal: AbortSignal.timeout(10_000) });
    return { status: response.status, body: await response.json() };
  };
  await eventually('the gateway is well', async () => {
    const { status, body } = await get('/api/health');
    return (status === 200 && body.status === 'healthy') || body;
  });
  await eventually('the gateway has keys', async () => {
    const { body } = await get('/.well-known/jwks.json');
    return body.keys?.length > 0 || body;
  });
  const isRefused = (headers) => async () => {
    const { status, body } = await get('/api/v1/registry/services', headers);
    return status === 401 || body;
  };
  await eventually('the gateway lets in nobody without a token', isRefused({}));
  await eventually('the gateway lets in nobody with any token', isRefused({ authorization: 'Bearer a.b.c' }));
}
/** The process of this name, whose health is reported at the URL. */
async function runs(name, healthUrl) {
  await eventually(`${name} is well`, async () => {
    const response = await fetch(healthUrl, { signal: AbortSignal.timeout(10_000) });
    const body = await response.json();
    return (response.status === 200 && body.status === 'healthy' && body.database === 'connected') || body;
  });
  await eventually(`${name} has registered itself`, answersWith('GET', `/services/${name}`, { status: 200 }));
}

for (const [name, url] of SERVICE_URLS.split(' ')
  .filter(Boolean)
  .map((each) => each.split('='))) {
  await runs(name, `${url}/api/v1/health`);
  if (GATEWAY_URL === undefined) continue;
  // For a provider that there is none of. The service refuses it, and the gateway would where it knows no service.
  await eventually(`the gateway leads providers to ${name}`, async () => {
    const path = `${GATEWAY_URL}/api/v1/${name}/notifications/helm-test`;
    const response = await fetch(path, { method: 'POST', body: '{}', signal: AbortSignal.timeout(10_000) });
    const body = await response.json();
    const isOfGateway = ['ROUTE_NOT_FOUND', 'SERVICE_NOT_FOUND'].includes(body.error?.code);
    return ([400, 401, 404].includes(response.status) && !isOfGateway) || body;
  });
}
if (FEDERATION_URL !== undefined) await runs('federation', `${FEDERATION_URL}/api/health`);
// One behind TLS is not asked: this speaks the bare protocol.
if (REDIS_URL?.startsWith('redis:')) await eventually('Redis answers', () => redisAnswers(REDIS_URL));
console.log('Rollcall works');
