import { setTimeout as delay } from 'node:timers/promises';
import { waitUntil } from '@rollcall/local/wait.ts';
import {
  createClient,
  forgedToken,
  requestToken,
  secretManifest,
  type TestClient,
  tokenOf,
} from '../gateway/gateway.ts';
import { NAMESPACE } from './chart.ts';
import type { ChartCluster } from './cluster.ts';

/** Where the chart has ApiClients and their Secrets. */
export const CLIENTS_NAMESPACE = `${NAMESPACE}-clients`;
export const GATEWAY_KEYS = 'rollcall-gateway-keys';

/** A running gateway to be used in every way that takes rights. */
export interface RunningGateway {
  readonly cluster: ChartCluster;
  readonly url: string;
}

const PATIENCE = { timeoutMs: 60_000 };
const LONG_AGO_MS = 365 * 86_400_000;
/**
 * A read of the Secret for an unknown key may be no sooner after the last one; failed attempts
 * count against a limit, too.
 */
const READ_INTERVAL_MS = 6000;

/** Clients that come, are ready or say why not, change their secrets, and go. */
export async function useClients({ cluster, url }: RunningGateway): Promise<void> {
  const gateway = { url };
  const kubectl: ChartCluster['kubectl'] = (args, run) =>
    cluster.kubectl([...args, '--namespace', CLIENTS_NAMESPACE], run);
  const isAdmitted = async (token: string) =>
    (await fetch(`${url}/api/ws/asyncapi.json`, { headers: { authorization: `Bearer ${token}` } })).status === 200;
  const reasonOfReady = () =>
    kubectl(['get', 'apiclient', 'shop', '--output=jsonpath={.status.conditions[?(@.type=="Ready")].reason}']);
  const client: TestClient = await createClient({ kubectl }, { id: 'shop' });
  const token = await tokenOf(gateway, client);
  if (!(await isAdmitted(token))) throw new Error('A client with a token is not admitted');
  await waitUntil('its status says so', async () => (await reasonOfReady()) === 'Ready', PATIENCE);
  const stdin = JSON.stringify(secretManifest('shop', 'another-secret-of-the-shop'));
  await kubectl(['apply', '--filename=-'], { stdin });
  await waitUntil('the token of the old secret is void', async () => !(await isAdmitted(token)), PATIENCE);
  const next = { id: 'shop', secret: 'another-secret-of-the-shop' };
  const another = await tokenOf(gateway, next);
  await kubectl(['delete', 'secret', 'shop']);
  await waitUntil(
    'the status of a client without a secret says so',
    async () => (await reasonOfReady()) === 'SecretMissing',
    PATIENCE,
  );
  await kubectl(['delete', 'apiclient', 'shop']);
  await waitUntil('it is out', async () => !(await isAdmitted(another)), PATIENCE);
  if ((await requestToken(gateway, next)).status !== 401) throw new Error('A client that is gone gets a token');
}

/** Makes the gateway's key an old one, and waits until another is published. */
export async function rotateKeys({ cluster, url }: RunningGateway): Promise<void> {
  const secret = ['secret', GATEWAY_KEYS, '--namespace', NAMESPACE];
  const { data } = JSON.parse(await cluster.kubectl(['get', ...secret, '--output=json'])) as {
    readonly data: Readonly<Record<string, string>>;
  };
  const stored = JSON.parse(Buffer.from(data['keys.json'] ?? '', 'base64').toString()) as {
    readonly keys: readonly { readonly createdAtMs: number }[];
  };
  const keys = stored.keys.map((key) => ({ ...key, createdAtMs: Date.now() - LONG_AGO_MS }));
  const aged = Buffer.from(JSON.stringify({ ...stored, keys })).toString('base64');
  const patch = JSON.stringify({ data: { 'keys.json': aged } });
  await cluster.kubectl(['patch', ...secret, '--type=merge', `--patch=${patch}`]);
  const unknown = forgedToken({ alg: 'ES256', typ: 'at+jwt', kid: 'unknown' }, { iss: 'rollcall' }, () => 'c2ln');
  const isRotated = async (): Promise<boolean> => {
    // It reads by itself once a minute.
    await fetch(`${url}/api/ws/asyncapi.json`, { headers: { authorization: `Bearer ${unknown}` } });
    const { keys: published } = (await (await fetch(`${url}/.well-known/jwks.json`)).json()) as { keys: object[] };
    if (published.length > keys.length) return true;
    await delay(READ_INTERVAL_MS);
    return false;
  };
  await waitUntil('a successor is published', isRotated, { timeoutMs: 120_000 });
}
