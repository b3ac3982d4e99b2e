import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import smpp, { type Pdu, type Session } from 'smpp';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { MessageProvider, OutgoingSms, ProviderReport } from '../domain/ports.ts';
import { createSmpp, type SmppSettings } from './smpp.ts';

const { signal } = new AbortController();
/** A busy machine answers within it. */
const PATIENT_MS = 15_000;
/** Of a test that waits for the end of it. */
const IMPATIENT_MS = 2000;
const message: OutgoingSms = {
  channel: 'sms',
  id: '0191f0a0-0000-7000-8000-000000000001',
  deduplicationId: 1,
  to: '+27821234567',
  text: 'Your code is 1234 {€}',
};

/** A message centre of one test. */
interface Centre {
  readonly port: number;
  readonly submitted: Pdu[];
  readonly sessions: Session[];
  /** Command status of what comes next; 0 when absent. */
  status: number;
  bindStatus: number;
  /** Says nothing to what is submitted. */
  isMute: boolean;
}

let stop: (() => Promise<void>)[] = [];
let centre: Centre;

beforeEach(async () => {
  centre = await startCentre();
});

afterEach(async () => {
  for (const end of stop.toReversed()) await end();
  stop = [];
});

async function startCentre(port = 0): Promise<Centre> {
  const made: Centre = { port: 0, submitted: [], sessions: [], status: 0, bindStatus: 0, isMute: false };
  const server = smpp.createServer((session) => {
    made.sessions.push(session);
    session.on('error', () => session.destroy());
    session.on('bind_transceiver', (pdu: Pdu) => session.send(pdu.response({ command_status: made.bindStatus })));
    session.on('enquire_link', (pdu: Pdu) => session.send(pdu.response()));
    session.on('unbind', (pdu: Pdu) => {
      session.send(pdu.response());
      session.close();
    });
    session.on('submit_sm', (pdu: Pdu) => {
      made.submitted.push(pdu);
      const fields = made.status === 0 ? { message_id: `A${made.submitted.length}` } : { command_status: made.status };
      if (!made.isMute) session.send(pdu.response(fields));
    });
  });
  const listening = await listen(server, port);
  stop.push(async () => {
    for (const session of made.sessions) session.destroy();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  });
  return Object.assign(made, { port: listening });
}

async function listen(server: Server, port: number): Promise<number> {
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

function start(settings: Partial<SmppSettings> = {}): MessageProvider<OutgoingSms> {
  const provider = createSmpp({
    host: '127.0.0.1',
    port: centre.port,
    tls: false,
    systemId: 'shop',
    password: 'right',
    timeoutMs: PATIENT_MS,
    sender: 'Acacia',
    receiptIds: 'same',
    ...settings,
  });
  stop.push(() => provider.close());
  return provider;
}

test('a message is taken, in one session for all', async () => {
  const provider = start();
  const outcomes = await Promise.all([provider.send(message, signal), provider.send(message, signal)]);
  expect(outcomes).toEqual([
    { outcome: 'accepted', providerId: 'A1' },
    { outcome: 'accepted', providerId: 'A2' },
  ]);
  expect(centre.sessions).toHaveLength(1);
  expect(centre.submitted[0]).toMatchObject({
    source_addr: 'Acacia',
    source_addr_ton: 5,
    destination_addr: '27821234567',
    dest_addr_ton: 1,
    registered_delivery: 1,
    data_coding: 0,
    short_message: { message: message.text },
  });
});

test('two hundred at a time are taken, without a warning', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on('warning', onWarning);
  const provider = start();
  const outcomes = await Promise.all(Array.from({ length: 200 }, () => provider.send(message, signal)));
  process.off('warning', onWarning);
  expect(new Set(outcomes.map((each) => 'providerId' in each && each.providerId)).size).toBe(200);
  expect(warnings).toEqual([]);
});

test.each([
  ['plain', 'x'.repeat(127), 'short_message'],
  ['escaped', '€'.repeat(128), 'message_payload'],
  ['long', 'x'.repeat(1530), 'message_payload'],
  ['of another alphabet', 'Olá 👋 ê', 'short_message'],
  ['long, and of another alphabet', '👋'.repeat(335), 'message_payload'],
] as const)('a text that is %s arrives whole', async (_what, text, field) => {
  expect(await start().send({ ...message, text }, signal)).toMatchObject({ outcome: 'accepted' });
  expect(centre.submitted).toHaveLength(1);
  expect(String(centre.submitted[0]?.[field]?.message)).toBe(text);
});

test.each([
  ['+27600000001', 1],
  ['27600000001', 1],
  ['32001', 3],
  ['Acacia 24', 5],
])('the sender %s is of type %i', async (sender, type) => {
  await start({ sender }).send(message, signal);
  expect(centre.submitted[0]).toMatchObject({ source_addr: sender.replace('+', ''), source_addr_ton: type });
});

test.each([
  [0x0b, { outcome: 'refused', cause: 'recipient', reason: 'smpp 11' }],
  [0x0a, { outcome: 'refused', cause: 'sender', reason: 'smpp 10' }],
  [0x01, { outcome: 'refused', cause: 'content', reason: 'smpp 1' }],
  [0x58, { outcome: 'failed', reason: 'smpp 88', retryAfterMs: 1000 }],
  [0x14, { outcome: 'failed', reason: 'smpp 20', retryAfterMs: 1000 }],
  [0x08, { outcome: 'failed', reason: 'smpp 8' }],
])('the status %i is an outcome', async (status, outcome) => {
  centre.status = status;
  expect(await start().send(message, signal)).toEqual(outcome);
});

test('a centre that does not know us is asked again at the next message', async () => {
  centre.bindStatus = 0x0e;
  const provider = start();
  expect(await provider.send(message, signal)).toEqual({ outcome: 'refused', cause: 'credentials', reason: 'smpp 14' });
  centre.bindStatus = 0;
  expect(await provider.send(message, signal)).toMatchObject({ outcome: 'accepted' });
});

test('where nobody answers to a message, nobody knows; where nobody answers at all, it was surely not taken', async () => {
  centre.isMute = true;
  const provider = start({ timeoutMs: IMPATIENT_MS });
  expect(await provider.send(message, signal)).toEqual({ outcome: 'unknown', reason: 'no answer' });
  const cut = provider.send(message, signal);
  await vi.waitFor(() => expect(centre.submitted).toHaveLength(2), { timeout: 30_000 });
  centre.sessions[0]?.destroy();
  expect(await cut).toMatchObject({ outcome: 'unknown' });
  const silent = createServer(() => undefined);
  const port = await listen(silent, 0);
  stop.push(async () => void silent.close());
  const socketless = start({ port, timeoutMs: IMPATIENT_MS });
  expect(await socketless.send(message, signal)).toEqual({ outcome: 'failed', reason: 'no session' });
  silent.close();
  expect(await start({ port: 1 }).send(message, signal)).toEqual({ outcome: 'failed', reason: 'no session' });
  expect(await start().send(message, AbortSignal.abort())).toMatchObject({ outcome: 'failed' });
});

test.each([['HTTP/1.1 400 Bad Request\r\n\r\n'], ['\0\0\0\x10'], ['\xff'.repeat(40)]])(
  'a server that is none, and says %j, takes nothing',
  async (said) => {
    const other = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.write(Buffer.from(said, 'latin1'));
    });
    const port = await listen(other, 0);
    stop.push(async () => void other.close());
    const provider = start({ port, timeoutMs: IMPATIENT_MS });
    expect(await provider.send(message, signal)).toEqual({ outcome: 'failed', reason: 'no session' });
  },
);

const receipt = (text: string, more = {}) => ({ esm_class: 4, short_message: text, ...more });
const text = (state: string, id = '10') =>
  `id:${id} sub:001 dlvrd:001 submit date:2611270800 done date:2611270801 stat:${state} err:00A text:Your code`;

async function reported(deliveries: readonly object[], settings: Partial<SmppSettings> = {}) {
  const provider = start(settings);
  const kept: ProviderReport[] = [];
  provider.onReports?.(async (reports) => void kept.push(...reports));
  await vi.waitFor(() => expect(centre.sessions).toHaveLength(1), { timeout: 30_000 });
  await provider.send(message, signal);
  const answers = await Promise.all(
    deliveries.map(
      (fields) => new Promise<Pdu>((resolve) => void centre.sessions[0]?.deliver_sm({ ...fields }, resolve)),
    ),
  );
  expect(answers.map(({ command_status: status }) => status)).toEqual(deliveries.map(() => 0));
  return kept;
}

test('receipts are handed on, by their fields or their text; of what people write, STOP and START', async () => {
  const kept = await reported([
    receipt(text('DELIVRD', 'A1')),
    receipt('', { receipted_message_id: 'A2', message_state: 5 }),
    receipt(text('ENROUTE', 'A3')),
    receipt(text('UNKNOWN', 'A4')),
    receipt('no receipt at all'),
    { esm_class: 0, short_message: text('DELIVRD', 'A5'), source_addr: '27821234567' },
    { esm_class: 0, short_message: 'Stop', source_addr: '27821234567' },
    { esm_class: 0, short_message: '', message_payload: 'START', source_addr: '27821234567' },
  ]);
  expect(kept).toEqual([
    { eventKey: 'A1:DELIVRD', providerId: 'A1', receipt: 'delivered', reason: 'DELIVRD 00A' },
    { eventKey: 'A2:UNDELIV', providerId: 'A2', receipt: 'bounced', reason: 'UNDELIV' },
    { eventKey: 'A3:ENROUTE', providerId: 'A3', receipt: 'sent', reason: 'ENROUTE 00A' },
    { eventKey: 'A4:UNKNOWN', providerId: 'A4', reason: 'UNKNOWN 00A' },
    {
      eventKey: expect.stringMatching(/:STOP$/),
      recipient: '+27821234567',
      reason: 'STOP',
      suppress: { kind: 'opted-out' },
    },
    { eventKey: expect.stringMatching(/:START$/), recipient: '+27821234567', reason: 'START', isOptIn: true },
  ]);
});

test('ids that receipts have in decimal are those of the answers', async () => {
  const [report] = await reported([receipt(text('DELIVRD', '161'))], { receiptIds: 'decimal' });
  expect(report?.providerId).toBe('a1');
});

test('a receipt that cannot be kept is asked for again', async () => {
  const provider = start();
  provider.onReports?.(() => Promise.reject(new Error('no database')));
  await vi.waitFor(() => expect(centre.sessions).toHaveLength(1), { timeout: 30_000 });
  await provider.send(message, signal);
  const answer = await new Promise<Pdu>(
    (resolve) => void centre.sessions[0]?.deliver_sm(receipt(text('DELIVRD')), resolve),
  );
  expect(answer.command_status).toBe(0x64);
});

test('a session that is lost is opened again, for receipts alone, too', async () => {
  const provider = start();
  provider.onReports?.(async () => {});
  await vi.waitFor(() => expect(centre.sessions).toHaveLength(1), { timeout: 30_000 });
  centre.sessions[0]?.destroy();
  await vi.waitFor(() => expect(centre.sessions).toHaveLength(2), { timeout: 30_000 });
  expect(await provider.send(message, signal)).toMatchObject({ outcome: 'accepted' });
});
