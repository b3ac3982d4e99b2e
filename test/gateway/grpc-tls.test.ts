import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createSecureServer, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, isIP } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer, getCACertificates, type Server, setDefaultCACertificates } from 'node:tls';
import { status } from '@grpc/grpc-js';
import { createAuthority, createCertificate } from '@rollcall/local/certificates.ts';
import { beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { createEchoClient, startProxy, TOKEN, targetOf } from './grpc-fixture.ts';

interface Keys {
  readonly cert: string;
  readonly key: string;
}

const UNREACHABLE = { code: status.UNAVAILABLE, details: 'The service could not be reached' };

let trusted: Keys;
let unknown: Keys;

/** A server's certificate by an authority of its own. */
async function createKeys(name: string): Promise<Keys & { readonly authority: string }> {
  const path = (what: string) => join(inject('temporaryDirectory'), `grpc-tls-${name}-${what}`);
  await createAuthority(path('ca'), `ca of ${name}`);
  const names = 'DNS:localhost,IP:127.0.0.1';
  await createCertificate({ file: path('server'), authority: path('ca'), subject: '/CN=backend', names });
  const [authority, cert, key] = await Promise.all(
    ['ca.crt', 'server.crt', 'server.key'].map((what) => readFile(path(what), 'utf8')),
  );
  return { authority: authority ?? '', cert: cert ?? '', key: key ?? '' };
}

beforeAll(async () => {
  const [one, other] = await Promise.all([createKeys('trusted'), createKeys('unknown')]);
  trusted = one;
  unknown = other;
  const before = getCACertificates('default');
  setDefaultCACertificates([...before, one.authority]);
  return () => setDefaultCACertificates(before);
});

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Answers each call with what it sent, and says by which name it was asked for. */
function backend(keys: Keys): { server: Server; names: unknown[] } {
  const names: unknown[] = [];
  const server = createSecureServer({ ...keys });
  server.on('secureConnection', (socket) => names.push(socket.servername));
  server.on('session', (session) => onTestFinished(() => session.destroy()));
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.pipe(stream);
  });
  return { server, names };
}

async function callOver(host: string, port: number) {
  await using proxy = await startProxy({ backendPort: port, limits: { connectTimeoutMs: 1000 } });
  proxy.registered.set('rollcall.test', targetOf('rollcall.test', `https://${host}:${port}`));
  using client = createEchoClient(proxy.port, { token: TOKEN });
  return await client.unary(Buffer.from('hello'));
}

test.each(['localhost', '127.0.0.1'])('a backend over TLS, by %s', async (host) => {
  const { server, names } = backend(trusted);
  const answer = await callOver(host, await listen(server));
  expect(answer.error).toBeUndefined();
  expect(answer.message?.toString()).toBe('hello');
  expect(names).toEqual([isIP(host) > 0 ? false : host]);
});

test('one that nobody vouches for gets no call', async () => {
  const { server } = backend(unknown);
  server.on('tlsClientError', () => undefined);
  expect((await callOver('localhost', await listen(server))).error).toMatchObject(UNREACHABLE);
});

test('one that speaks no HTTP/2 gets no call', async () => {
  const server = createTlsServer({ ...trusted, ALPNProtocols: ['http/1.1'] });
  server.on('tlsClientError', () => undefined);
  expect((await callOver('localhost', await listen(server))).error).toMatchObject(UNREACHABLE);
});
