import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Simulator } from '../simulator.ts';
import { type Receiver, startReceiver } from '../testing/receiver.ts';
import { startClickatell } from './clickatell.ts';

const TO = '27821234567';
const API_KEY = 'key==';

let simulator: Simulator;
let receiver: Receiver;

beforeEach(async () => {
  receiver = await startReceiver();
  const callbackUrl = `${receiver.url}/hooks/clickatell/s3cret`;
  simulator = await startClickatell({ apiKey: API_KEY, callbackUrl, credits: 250, retryDelaysMs: [] });
});

afterEach(async () => {
  await simulator.stop();
  await receiver[Symbol.asyncDispose]();
});

describe('messages', () => {
  test('are accepted with 202, and looked up by id', async () => {
    const { status, body } = await send([sms({ clientMessageId: 'ours-1' })]);
    expect(status).toBe(202);
    const apiMessageId = expect.stringMatching(/^[0-9a-f]{32}$/);
    expect(body).toEqual({ messages: [{ apiMessageId, accepted: true, to: TO, error: null }], error: null });
    const found = await call('GET', `/v1/message/${body.messages[0].apiMessageId}`);
    expect(found.body).toEqual({ sms: { status: 'DEVICE_ACK', timestamp: expect.any(Number) } });
    expect(await call('GET', '/v1/message/1')).toMatchObject({ status: 404, body: { error: { code: 41 } } });
  });

  test('are answered with 207 where some are not', async () => {
    simulator.setOutcomes({ '+27820000000': '26' });
    const entries = [sms({}), sms({ to: '27820000000' }), sms({ to: `+${TO}` }), sms({ to: '27114471234' })];
    const { status, body } = await send([...entries, sms({ content: 'a'.repeat(1601) }), { to: TO }, 'a']);
    expect(status).toBe(207);
    const codes = body.messages.map(({ accepted, error }: { accepted: boolean; error: { code: number } | null }) =>
      accepted ? 0 : error?.code,
    );
    expect(codes).toEqual([0, 26, 25, 27, 24, 23, 23]);
    expect(body.messages[1]).toMatchObject({ to: '27820000000', error: { description: 'Recipient opted-out' } });
  });

  test.each([
    [{}, 21],
    [{ messages: [] }, 21],
    [[], 21],
    [{ messages: Array.from({ length: 201 }, () => sms({})) }, 22],
  ])('are refused as a whole where the payload is wrong', async (payload, code) => {
    expect(await call('POST', '/v1/message', payload)).toMatchObject({
      status: 400,
      body: { messages: [], error: { code } },
    });
    expect(simulator.requests()).toMatchObject([{ isAccepted: false }]);
  });

  test('are refused without the key, and without credit', async () => {
    for (const authorization of ['', 'other', `Bearer ${API_KEY}`]) {
      const answer = await fetch(`${simulator.url}/v1/message`, { method: 'POST', headers: { authorization } });
      expect(answer.status).toBe(401);
    }
    const many = Array.from({ length: 200 }, () => sms({}));
    expect((await send(many)).status).toBe(202);
    expect(await send(many)).toMatchObject({ status: 402, body: { error: { code: 20 } } });
  });

  test.each([
    [429, 43],
    [503, 19],
  ])('meet %i with code %i', async (status, code) => {
    simulator.addFaults({ kind: 'status', status });
    expect(await send([sms({})])).toMatchObject({ status, body: { error: { code } } });
  });
});

describe('status updates', () => {
  test('go to the address that was said last', async () => {
    simulator.setWebhook(`${receiver.url}/elsewhere`);
    await send([sms({})]);
    await simulator.idle();
    expect(receiver.taken.map(({ target }) => target)).toEqual(['/elsewhere', '/elsewhere']);
  });

  test.each([
    [undefined, ['SENT_TO_SUPPLIER', 'DEVICE_ACK']],
    ['SENT_TO_SUPPLIER', ['SENT_TO_SUPPLIER']],
    ['EXPIRED', ['SENT_TO_SUPPLIER', 'EXPIRED']],
    ['RECIPIENT_DOES_NOT_EXIST', ['SENT_TO_SUPPLIER', 'RECIPIENT_DOES_NOT_EXIST']],
  ])('tell of a message that ends as %s', async (outcome, statuses) => {
    if (outcome !== undefined) simulator.setOutcomes({ [`+${TO}`]: outcome });
    const { body } = await send([sms({ clientMessageId: 'ours-1' })]);
    await simulator.idle();
    expect(events().map(({ status }) => status)).toEqual(statuses);
    const [{ apiMessageId: messageId }] = body.messages;
    for (const event of events()) expect(event).toMatchObject({ messageId, clientMessageId: 'ours-1', channel: 'sms' });
    expect(receiver.taken[0]?.target).toBe('/hooks/clickatell/s3cret');
  });

  test('go to a wrong address where they are to be forged', async () => {
    simulator.addFaults({ kind: 'bad-signature' });
    await send([sms({})]);
    await simulator.idle();
    expect(receiver.taken).toHaveLength(2);
    expect(receiver.taken.map(({ target }) => target)).not.toContain('/hooks/clickatell/s3cret');
  });
});

const events = () => receiver.taken.map(({ body }) => JSON.parse(body).event.messageStatusUpdate[0]);
const sms = (changes: object) => ({ channel: 'sms', to: TO, content: 'Hello', ...changes });
const send = (messages: readonly unknown[]) => call('POST', '/v1/message', { messages });

async function call(method: 'GET' | 'POST', path: string, value?: unknown) {
  const headers = { authorization: API_KEY, 'content-type': 'application/json' };
  const body = value === undefined ? {} : { body: JSON.stringify(value) };
  const answer = await fetch(`${simulator.url}${path}`, { method, headers, ...body });
  return { status: answer.status, body: JSON.parse(await answer.text()) };
}
