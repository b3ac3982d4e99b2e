import { once } from 'node:events';
import { mkdtemp, readFile } from 'node:fs/promises';
import { createSecureServer } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import type { MessageProvider, OutgoingMessage } from '@rollcall/communication/domain/ports.ts';
import { createApns } from '@rollcall/communication/providers/apns.ts';
import { createSmpp } from '@rollcall/communication/providers/smpp.ts';
import { createSmtp } from '@rollcall/communication/providers/smtp.ts';
import { createAuthority, createCertificate } from '@rollcall/local/certificates.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import smpp, { type Pdu } from 'smpp';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { email, ofChannel, pushTo, sms } from './provider-worlds.ts';

const stack = new AsyncDisposableStack();
const { signal } = new AbortController();
/** Of a server, by who is asked. */
let key: string;
let cert: string;
/** That has signed it, and one that has not. */
let ca: string;
let otherCa: string;
let taken = 0;

beforeAll(async () => {
  const directory = await mkdtemp(join(inject('temporaryDirectory'), 'provider-tls-'));
  const file = (name: string) => join(directory, name);
  for (const name of ['ca', 'other']) await createAuthority(file(name), name);
  const names = 'DNS:localhost';
  await createCertificate({ file: file('server'), authority: file('ca'), subject: '/CN=provider', names });
  const read = (name: string) => readFile(file(name), 'utf8');
  [key, cert, ca, otherCa] = (await Promise.all(['server.key', 'server.crt', 'ca.crt', 'other.crt'].map(read))) as [
    string,
    string,
    string,
    string,
  ];
});

afterAll(() => stack.disposeAsync());

async function portOf(server: Server): Promise<number> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

async function startMailServer(secure: boolean): Promise<number> {
  const server = new SMTPServer({
    secure,
    key,
    cert,
    authOptional: true,
    logger: false,
    onData(stream, _session, answer) {
      stream.resume();
      stream.once('end', () => {
        taken += 1;
        answer();
      });
    },
  });
  server.on('error', () => undefined);
  stack.defer(() => server.close());
  return portOf(server.listen(0, '127.0.0.1'));
}

async function startCentre(): Promise<number> {
  const sessions = smpp.createServer((session) => {
    session.on('error', () => session.destroy());
    session.on('bind_transceiver', (pdu: Pdu) => session.send(pdu.response()));
    session.on('unbind', (pdu: Pdu) => session.send(pdu.response()));
    session.on('submit_sm', (pdu: Pdu) => {
      taken += 1;
      session.send(pdu.response({ message_id: 'A1' }));
    });
  });
  const server = createTlsServer({ key, cert }, (socket: TLSSocket) => void sessions.emit('connection', socket));
  server.on('tlsClientError', () => undefined);
  stack.defer(() => void server.close());
  return portOf(server);
}

interface Way {
  readonly host: string;
  readonly port: number;
  readonly ca: string;
}

interface Case {
  readonly name: string;
  readonly message: OutgoingMessage;
  readonly start: () => Promise<number>;
  readonly provider: (way: Way) => MessageProvider;
}

function smtpBy(tls: 'implicit' | 'required') {
  return (way: Way) =>
    ofChannel(createSmtp({ ...way, tls, connections: 1, timeoutMs: 15_000, bounceDomain: 'mail.example' }));
}

const smppSettings = { tls: true, systemId: 'shop', password: 'right', sender: 'Acacia', receiptIds: 'same' } as const;

const cases: readonly Case[] = [
  { name: 'SMTP over TLS', message: email, start: () => startMailServer(true), provider: smtpBy('implicit') },
  { name: 'SMTP by STARTTLS', message: email, start: () => startMailServer(false), provider: smtpBy('required') },
  {
    name: 'SMPP over TLS',
    message: sms,
    start: startCentre,
    provider: (way) => ofChannel(createSmpp({ ...smppSettings, ...way, timeoutMs: 15_000 })),
  },
];

describe.each(cases)('$name', ({ message, start, provider }) => {
  let port: number;

  beforeAll(async () => {
    port = await start();
  });

  async function sendBy(way: Omit<Way, 'port'>) {
    const by = provider({ ...way, port });
    const before = taken;
    const { outcome } = await by.send(message, signal);
    await by.close();
    return { outcome, taken: taken - before };
  }

  test('a server of the authority that is trusted gets the message', async () => {
    expect(await sendBy({ host: 'localhost', ca })).toEqual({ outcome: 'accepted', taken: 1 });
  });

  test('a server of another authority, or of another name, gets nothing', async () => {
    expect(await sendBy({ host: 'localhost', ca: otherCa })).toEqual({ outcome: 'failed', taken: 0 });
    expect(await sendBy({ host: '127.0.0.1', ca })).toEqual({ outcome: 'failed', taken: 0 });
  });
});

test('a server that says it is APNs, and cannot show it, gets nothing', async () => {
  const server = createSecureServer({ key, cert });
  server.on('stream', () => {
    taken += 1;
  });
  server.on('sessionError', () => undefined);
  stack.defer(() => void server.close());
  const baseUrl = new URL(`https://localhost:${await portOf(server)}`);
  const settings = { teamId: 'TEAM', keyId: 'KEY', topic: 'example.shop', ttlSeconds: 60, timeoutMs: 15_000 };
  const provider = createApns({ ...settings, baseUrl, privateKey: key }, { clock: systemClock });
  const before = taken;
  const message = pushTo({ platform: 'apns', token: 'ab'.repeat(32) });
  expect(await provider.send(message, signal)).toMatchObject({ outcome: 'failed' });
  expect(taken).toBe(before);
  await provider.close();
});
