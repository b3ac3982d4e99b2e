import { createECDH, generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import type { MessageProvider, OutgoingMessage } from '@rollcall/communication/domain/ports.ts';
import { createApns } from '@rollcall/communication/providers/apns.ts';
import { createSmpp } from '@rollcall/communication/providers/smpp.ts';
import { createSmtp } from '@rollcall/communication/providers/smtp.ts';
import { createWebPush } from '@rollcall/communication/providers/webpush.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { jwtVerify } from 'jose';
import smpp, { type Pdu, type Session } from 'smpp';
import { SMTPServer } from 'smtp-server';
import {
  BUSY_SECONDS,
  email,
  type Fault,
  ofChannel,
  pushTo,
  SLOW_MS,
  type StartWorld,
  sms,
  type World,
} from './provider-worlds.ts';
import { type Relay, startRelay } from './relay.ts';

/** What the other side says to a message that has arrived whole. */
type Verdict = 'taken' | 'taken-with-broken-id' | 'error' | 'busy';

/** An id that ends in half of an emoji and a NUL, where the protocol lets it through. */
const BROKEN = '\ud83d\0';

/** The faults of a server that we did not write: it asks before it answers. */
function createTurns(relay: Relay) {
  const waiting: Fault[] = [];
  let taken = 0;
  return {
    taken: () => taken,
    meet: (fault: Fault) => void waiting.push(fault),
    /** Never resolves for a message that gets no answer. */
    async decide(): Promise<Verdict> {
      const fault = waiting.shift();
      if (fault === 'error' || fault === 'busy') return fault;
      taken += 1;
      if (fault === 'accept-and-hang') await new Promise<never>(() => undefined);
      if (fault === 'slow') await sleep(SLOW_MS);
      if (fault === 'garbage' || fault === 'half' || fault === 'reset') relay.spoil(fault);
      return fault === 'broken-ids' ? 'taken-with-broken-id' : 'taken';
    },
  };
}

type Turns = ReturnType<typeof createTurns>;

/** The other side, before there is a provider. */
interface Counterpart {
  readonly port: number;
  readonly turns: Turns;
  stop(): Promise<void>;
}

/** @param serve makes a server that asks for its turns once it has a message, and starts it on 127.0.0.1. */
async function startCounterpart(
  serve: (decide: Turns['decide']) => Promise<{ readonly port: number; close(): void }>,
): Promise<Counterpart> {
  let turns: Turns | undefined;
  const server = await serve(async () => (turns === undefined ? 'taken' : turns.decide()));
  const relay = await startRelay(server.port);
  turns = createTurns(relay);
  return {
    port: relay.port,
    turns,
    async stop() {
      await relay[Symbol.asyncDispose]();
      server.close();
    },
  };
}

async function portOf(server: Server): Promise<number> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

interface WorldParts {
  readonly counterpart: Counterpart;
  readonly provider: MessageProvider;
  readonly message: OutgoingMessage;
}

function worldOf({ counterpart, provider, message }: WorldParts): World {
  return {
    provider,
    message,
    taken: counterpart.turns.taken,
    meet: counterpart.turns.meet,
    stop: () => counterpart.stop(),
    async [Symbol.asyncDispose]() {
      await provider.close();
      await counterpart.stop();
    },
  };
}

/** Providers by protocols of their own, against servers of others behind a way that spoils answers. */
export const wireWorlds: Readonly<Record<'smtp' | 'smpp' | 'apns' | 'webpush', StartWorld>> = {
  async smtp({ timeoutMs, isSecretWrong = false }) {
    const counterpart = await startCounterpart(serveMail);
    const provider = createSmtp({
      host: '127.0.0.1',
      port: counterpart.port,
      tls: 'none',
      auth: { user: 'shop', pass: isSecretWrong ? 'wrong' : 'right' },
      connections: 2,
      timeoutMs,
      bounceDomain: 'mail.example',
    });
    return worldOf({ counterpart, provider: ofChannel(provider), message: email });
  },
  async smpp({ timeoutMs, isSecretWrong = false }) {
    const counterpart = await startCounterpart(serveShortMessages);
    const provider = createSmpp({
      host: '127.0.0.1',
      port: counterpart.port,
      tls: false,
      systemId: 'shop',
      password: isSecretWrong ? 'wrong' : 'right',
      timeoutMs,
      sender: 'Acacia',
      receiptIds: 'same',
    });
    return worldOf({ counterpart, provider: ofChannel(provider), message: sms });
  },
  async apns({ timeoutMs, isSecretWrong = false }) {
    const [right, wrong] = [newKeys(), newKeys()];
    const counterpart = await startCounterpart((decide) => serveApple(decide, right.publicKey));
    const settings = { teamId: 'TEAM', keyId: 'KEY', topic: 'example.shop', ttlSeconds: 60, timeoutMs };
    const privateKey = (isSecretWrong ? wrong : right).privateKey.export({ type: 'pkcs8', format: 'pem' });
    const baseUrl = new URL(`http://127.0.0.1:${counterpart.port}`);
    const provider = createApns({ ...settings, baseUrl, privateKey }, { clock: systemClock });
    const message = pushTo({ platform: 'apns', token: 'ab'.repeat(32) });
    return worldOf({ counterpart, provider: ofChannel(provider), message });
  },
  async webpush({ timeoutMs, isSecretWrong = false }) {
    const [right, wrong] = [newVapid(), newVapid()];
    const counterpart = await startCounterpart((decide) => servePushes(decide, right.publicKey));
    const vapid = { subject: 'mailto:push@shop.example', ...(isSecretWrong ? wrong : right) };
    const settings = { vapid, ttlSeconds: 60, timeoutMs, mayConnect: addressRules.any };
    const browser = createECDH('prime256v1');
    const message = pushTo({
      platform: 'webpush',
      endpoint: `http://127.0.0.1:${counterpart.port}/send/1`,
      p256dh: browser.generateKeys('base64url'),
      auth: randomBytes(16).toString('base64url'),
    });
    const provider = createWebPush(settings, { clock: systemClock });
    return worldOf({ counterpart, provider: ofChannel(provider), message });
  },
};

function newKeys() {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

function newVapid() {
  const keys = createECDH('prime256v1');
  const publicKey = keys.generateKeys('base64url');
  return { publicKey, privateKey: keys.getPrivateKey('base64url') };
}

async function serveMail(decide: Turns['decide']) {
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    logger: false,
    onAuth({ password }, _session, answer) {
      if (password === 'right') answer(null, { user: 'shop' });
      else answer(Object.assign(new Error('5.7.8 no'), { responseCode: 535 }));
    },
    onData(stream, _session, answer) {
      stream.resume();
      stream.once('end', () => void decide().then((verdict) => answerMail(verdict, answer)));
    },
  });
  const port = await portOf(server.listen(0, '127.0.0.1'));
  return { port, close: () => server.close() };
}

/** The words of RFC 3463 for "try again", and "the system is too busy". */
function answerMail(verdict: Verdict, answer: (error?: Error | null, message?: string) => void): void {
  const no = (responseCode: number, words: string) => answer(Object.assign(new Error(words), { responseCode }));
  if (verdict === 'error') no(451, '4.3.0 local error');
  else if (verdict === 'busy') no(454, '4.7.0 sending rate exceeded');
  else answer(null, verdict === 'taken' ? 'queued as 1' : `queued as ${BROKEN}`);
}

const RIGHT = 0;
const WRONG_PASSWORD = 14;
const SYSTEM_ERROR = 8;
const THROTTLED = 88;

async function serveShortMessages(decide: Turns['decide']) {
  const server = smpp.createServer((session: Session) => {
    session.on('error', () => session.destroy());
    session.on('bind_transceiver', (pdu: Pdu & { readonly password?: string }) => {
      session.send(pdu.response({ command_status: pdu.password === 'right' ? RIGHT : WRONG_PASSWORD }));
    });
    session.on('unbind', (pdu: Pdu) => session.send(pdu.response()));
    session.on('submit_sm', (pdu: Pdu) => {
      void decide().then((verdict) => session.send(pdu.response(submitted(verdict))));
    });
  });
  return { port: await portOf(server), close: () => void server.close() };
}

function submitted(verdict: Verdict) {
  if (verdict === 'error') return { command_status: SYSTEM_ERROR };
  if (verdict === 'busy') return { command_status: THROTTLED };
  return { message_id: verdict === 'taken' ? 'A1' : `A1${BROKEN}` };
}

const RETRY_AFTER = String(BUSY_SECONDS);

async function serveApple(decide: Turns['decide'], publicKey: ReturnType<typeof newKeys>['publicKey']) {
  const server = createHttp2Server();
  server.on('stream', (stream: ServerHttp2Stream, { authorization = '' }: { readonly authorization?: string }) => {
    stream.on('error', () => undefined);
    stream.resume();
    stream.once('end', () => {
      void jwtVerify(authorization.replace('bearer ', ''), publicKey).then(
        async () => answerPush(stream, await decide()),
        () => refusePush(stream, { status: 403, reason: 'InvalidProviderToken' }),
      );
    });
  });
  return { port: await portOf(server), close: () => void server.close() };
}

function answerPush(stream: ServerHttp2Stream, verdict: Verdict): void {
  if (stream.destroyed) return;
  if (verdict === 'error') refusePush(stream, { status: 500, reason: 'InternalServerError' });
  else if (verdict === 'busy')
    refusePush(stream, { status: 429, reason: 'TooManyRequests', headers: { 'retry-after': RETRY_AFTER } });
  else stream.respond({ ':status': 200 }, { endStream: true });
}

interface Refusal {
  readonly status: number;
  readonly reason: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function refusePush(stream: ServerHttp2Stream, { status, reason, headers = {} }: Refusal): void {
  stream.respond({ ':status': status, ...headers });
  stream.end(JSON.stringify({ reason }));
}

function answerWebPush(response: ServerResponse, verdict: Verdict): ServerResponse {
  if (verdict === 'error') return response.writeHead(500).end();
  if (verdict === 'busy') return response.writeHead(429, { 'retry-after': RETRY_AFTER }).end();
  return response.writeHead(201, { location: `http://127.0.0.1/m/${verdict === 'taken' ? 1 : '\u00ff'}` }).end();
}

async function servePushes(decide: Turns['decide'], publicKey: string) {
  const server = createHttpServer((request, response) => {
    request.resume();
    request.once('end', () => {
      if (request.headers.authorization?.endsWith(`k=${publicKey}`) !== true) {
        response.writeHead(403).end();
        return;
      }
      void decide().then((verdict) => answerWebPush(response, verdict));
    });
  });
  return { port: await portOf(server), close: () => void server.close() };
}
