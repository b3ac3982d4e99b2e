import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { simpleParser } from 'mailparser';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { afterEach, expect, test } from 'vitest';
import type { OutgoingEmail } from '../domain/ports.ts';
import { createSmtp, type SmtpSettings } from './smtp.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

interface Taken {
  readonly from: string;
  readonly to: readonly string[];
  readonly source: string;
}

/** A server of others that keeps what it takes. */
async function startServer(options: SMTPServerOptions = {}) {
  const taken: Taken[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    hideDSN: false,
    logger: false,
    onData(stream, { envelope }, callback) {
      const chunks: Uint8Array[] = [];
      stream.on('data', (chunk: Uint8Array) => chunks.push(chunk));
      stream.on('end', () => {
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
        const to = envelope.rcptTo.map(({ address }) => address);
        taken.push({ from, to, source: Buffer.concat(chunks).toString('utf8') });
        callback();
      });
    },
    ...options,
  });
  const listening = server.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  closing.push(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { taken, port: portOf(listening) };
}

/** A server that says what a test wants, line by line. */
async function startScript(answer: (line: string, socket: Socket) => string | undefined) {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.write('220 test ESMTP\r\n');
    let rest = '';
    socket.on('data', (chunk) => {
      const lines = `${rest}${chunk.toString('latin1')}`.split('\r\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const said = answer(line, socket);
        if (said !== undefined && !socket.destroyed) socket.write(`${said}\r\n`);
      }
    });
    closing.push(async () => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(async () => server.close());
  return portOf(server);
}

/** Answers as any server does, and after DATA with 354. */
function usual(line: string): string | undefined {
  if (line.startsWith('EHLO')) return '250 test';
  if (/^(MAIL|RCPT)/.test(line)) return '250 ok';
  return line === 'DATA' ? '354 go' : undefined;
}

function smtp(port: number, settings: Partial<SmtpSettings> = {}) {
  const defaults = {
    host: '127.0.0.1',
    tls: 'none',
    connections: 2,
    timeoutMs: 15_000,
    bounceDomain: 'mail.example',
  } as const;
  const provider = createSmtp({ ...defaults, port, ...settings });
  closing.push(() => provider.close());
  return provider;
}

const email: OutgoingEmail = {
  channel: 'email',
  id: '0191f0a0-0000-7000-8000-000000000001',
  deduplicationId: 1,
  from: { name: 'Acacia', address: 'shop@shop.example' },
  to: { name: 'Ana', address: 'ana@example.com' },
  cc: [],
  bcc: [],
  subject: 'Hello',
  text: 'Good day',
  html: '<p>Good day</p>',
  attachments: [],
};
const { signal } = new AbortController();

test('a mail arrives as it was asked for', async () => {
  const { port, taken } = await startServer();
  const outcome = await smtp(port).send(
    {
      ...email,
      cc: [{ address: 'cc@example.com' }],
      bcc: [{ address: 'bcc@example.com' }],
      replyTo: { address: 'help@shop.example' },
      subject: 'Grüße',
      unsubscribeUrl: 'https://shop.example/unsubscribe/abc',
      attachments: [{ filename: 'a.txt', contentType: 'text/plain', content: Buffer.from('attached') }],
    },
    signal,
  );
  const messageId = `<${email.id}@mail.example>`;
  expect(outcome).toEqual({ outcome: 'accepted', providerId: messageId });
  expect(taken).toHaveLength(1);
  const [{ from, to, source } = { from: '', to: [], source: '' }] = taken;
  expect(from).toBe(`bounces+${email.id}@mail.example`);
  expect(to).toEqual(['ana@example.com', 'cc@example.com', 'bcc@example.com']);
  expect(source).not.toContain('bcc@example.com');
  const mail = await simpleParser(source);
  expect(mail).toMatchObject({ subject: 'Grüße', messageId, text: 'Good day', html: '<p>Good day</p>' });
  expect(mail.from?.text).toBe('"Acacia" <shop@shop.example>');
  expect(mail.replyTo?.text).toBe('help@shop.example');
  expect(mail.attachments.map(({ filename, content }) => [filename, String(content)])).toEqual([['a.txt', 'attached']]);
  expect(source).toContain('List-Unsubscribe: <https://shop.example/unsubscribe/abc>\r\n');
  expect(source).toContain('List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n');
});

test('a mail has the same Message-ID at each attempt', async () => {
  const { port, taken } = await startServer();
  const provider = smtp(port);
  await provider.send(email, signal);
  await provider.send(email, signal);
  const mails = await Promise.all(taken.map(({ source }) => simpleParser(source)));
  expect(new Set(mails.map(({ messageId }) => messageId))).toEqual(new Set([`<${email.id}@mail.example>`]));
});

test('DKIM signs both headers of one click', async () => {
  const { port, taken } = await startServer();
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const provider = smtp(port, { dkim: { domain: 'shop.example', selector: 's1', privateKey } });
  await provider.send({ ...email, unsubscribeUrl: 'https://shop.example/u/1' }, signal);
  const [signature = ''] = /^DKIM-Signature:(?:.|\r\n\s)*/m.exec(taken[0]?.source ?? '') ?? [];
  expect(signature).toMatch(/d=shop\.example;/);
  expect(signature.replaceAll(/\s/g, '')).toContain(':list-unsubscribe:list-unsubscribe-post;');
});

test('whatever stands in a name or a subject, the envelope is the request and no header is added', async () => {
  const { port, taken } = await startServer();
  const evil = 'x\r\nBcc: evil@y.example\r\nX-Evil: 1\u0000, b@y.example <c@y.example>';
  const outcome = await smtp(port).send(
    {
      ...email,
      subject: evil,
      to: { name: evil, address: 'ana@example.com' },
      from: { name: evil, address: 'shop@shop.example' },
    },
    signal,
  );
  expect(outcome.outcome).toBe('accepted');
  expect(taken.map(({ to }) => to)).toEqual([['ana@example.com']]);
  const { headers } = await simpleParser(taken[0]?.source ?? '');
  expect(headers.has('bcc')).toBe(false);
  expect(headers.has('x-evil')).toBe(false);
});

const refusing = (code: number, message: string, whom = 'ana@example.com'): SMTPServerOptions => ({
  onRcptTo({ address }, _session, callback) {
    callback(address === whom ? Object.assign(new Error(message), { responseCode: code }) : null);
  },
});

test.each([
  {
    code: 550,
    message: '5.1.1 gone',
    outcome: { outcome: 'refused', cause: 'recipient', reason: '550 5.1.1', suppress: { kind: 'address-unknown' } },
  },
  { code: 552, message: '5.2.2 full', outcome: { outcome: 'refused', cause: 'recipient', reason: '552 5.2.2' } },
  { code: 451, message: '4.7.1 greylisted', outcome: { outcome: 'failed', reason: '451 4.7.1' } },
  { code: 454, message: 'sending rate exceeded', outcome: { outcome: 'failed', reason: '454', retryAfterMs: 1000 } },
])('a server that answers $code $message: $outcome', async ({ code, message, outcome }) => {
  const { port, taken } = await startServer(refusing(code, message));
  const provider = smtp(port);
  expect(await provider.send(email, signal)).toEqual(outcome);
  expect(taken).toEqual([]);
  const other = { ...email, to: { address: 'b@example.com' } };
  expect(await provider.send(other, signal)).toMatchObject({ outcome: 'accepted' });
});

test('of several recipients, the one that was refused is named', async () => {
  const { port } = await startServer(refusing(550, '5.1.1 gone', 'cc@example.com'));
  expect(await smtp(port).send({ ...email, cc: [{ address: 'cc@example.com' }] }, signal)).toEqual({
    outcome: 'accepted',
    providerId: `<${email.id}@mail.example>`,
    refusedRecipients: [{ address: 'cc@example.com', reason: '550 5.1.1', suppress: { kind: 'address-unknown' } }],
  });
});

test.each([
  { code: 450, outcome: { outcome: 'failed', reason: '450 4.2.1', copied: ['cc@example.com', 'bcc@example.com'] } },
  {
    code: 550,
    outcome: { outcome: 'accepted', refusedRecipients: [{ address: 'ana@example.com', reason: '550 4.2.1' }] },
  },
])('a mail that is taken for its copies alone, and $code for its recipient: $outcome', async ({ code, outcome }) => {
  const { port, taken } = await startServer(refusing(code, '4.2.1 no'));
  const copies = { cc: [{ address: 'cc@example.com' }], bcc: [{ address: 'bcc@example.com' }] };
  expect(await smtp(port).send({ ...email, ...copies }, signal)).toMatchObject(outcome);
  expect(taken.map(({ to }) => to)).toEqual([['cc@example.com', 'bcc@example.com']]);
});

test('a wrong password is no fault of the mail', async () => {
  const { port } = await startServer({
    onAuth: (_auth, _session, callback) => callback(Object.assign(new Error('5.7.8 no'), { responseCode: 535 })),
  });
  const provider = smtp(port, { auth: { user: 'u', pass: 'p' } });
  expect(await provider.send(email, signal)).toEqual({ outcome: 'refused', cause: 'credentials', reason: '535 5.7.8' });
});

test('nothing is sent in the clear where TLS is required', async () => {
  const { port, taken } = await startServer();
  expect(await smtp(port, { tls: 'required' }).send(email, signal)).toMatchObject({ outcome: 'failed' });
  expect(taken).toEqual([]);
});

test('a server that is not there has taken nothing', async () => {
  const { port } = await startServer();
  await closing.pop()?.();
  expect(await smtp(port).send(email, signal)).toMatchObject({ outcome: 'failed' });
});

test.each(['EHLO', 'MAIL', 'RCPT', 'DATA'])('a server that hangs up at %s has taken nothing', async (command) => {
  const port = await startScript((line, socket) => {
    if (!line.startsWith(command)) return usual(line);
    socket.destroy();
    return undefined;
  });
  expect(await smtp(port).send(email, signal)).toMatchObject({ outcome: 'failed' });
});

test('a server that hangs up after the mail may have taken it, and gets it once', async () => {
  let mails = 0;
  const port = await startScript((line, socket) => {
    if (line !== '.') return usual(line);
    mails += 1;
    socket.destroy();
    return undefined;
  });
  expect(await smtp(port).send(email, signal)).toMatchObject({ outcome: 'unknown' });
  expect(mails).toBe(1);
});

test.each([
  { line: '.', outcome: 'unknown' },
  { line: 'RCPT', outcome: 'failed' },
])('a server that says nothing to $line in time: $outcome', async ({ line: silent, outcome }) => {
  const port = await startScript((line) => (line.startsWith(silent) ? undefined : usual(line)));
  expect(await smtp(port, { timeoutMs: 2000 }).send(email, signal)).toMatchObject({ outcome });
});

test.each([
  { line: '.', outcome: 'unknown' },
  { line: 'RCPT', outcome: 'failed' },
])('an attempt that is given up while the server thinks about $line: $outcome', async ({ line: silent, outcome }) => {
  const giveUp = new AbortController();
  const port = await startScript((line) => {
    if (!line.startsWith(silent)) return usual(line);
    giveUp.abort();
    return undefined;
  });
  expect(await smtp(port).send(email, giveUp.signal)).toMatchObject({ outcome });
});

test('an answer of 5xx after the mail is a refusal of it, and 4xx is not', async () => {
  let code = 554;
  const port = await startScript((line) => (line === '.' ? `${code} no` : line === 'RSET' ? '250 ok' : usual(line)));
  const provider = smtp(port);
  expect(await provider.send(email, signal)).toEqual({ outcome: 'refused', cause: 'content', reason: '554' });
  code = 451;
  expect(await provider.send(email, signal)).toEqual({ outcome: 'failed', reason: '451' });
});

function portOf(server: Pick<Server, 'address'>): number {
  return (server.address() as AddressInfo).port;
}
