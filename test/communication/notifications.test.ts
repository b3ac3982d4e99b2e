import { twilioSignature } from '@rollcall/simulators/sms/twilio-signature.ts';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { NUMBERS, type SmsFixture, startSmsFixture, TWILIO_TOKEN } from './sms-fixture.ts';

let fixture: SmsFixture;

beforeAll(async () => {
  fixture = await startSmsFixture();
});

afterAll(() => fixture[Symbol.asyncDispose]());

beforeEach(async () => {
  await fixture.twilio.reset();
  await fixture.bulksms.reset();
});

const statusOf = (sent: Parameters<SmsFixture['message']>[0]) => async () => (await fixture.message(sent))['status'];

test('what a provider reports moves the message forward', async () => {
  const sent = await fixture.send('twilio');
  await expect.poll(statusOf(sent)).toBe('delivered');
  const { events, attempts } = await fixture.message(sent);
  expect(events).toMatchObject([
    { type: 'message.queued' },
    { type: 'message.sending' },
    { type: 'message.sent' },
    { type: 'message.delivered' },
  ]);
  expect(attempts).toMatchObject([{ provider: 'twilio', status: 'accepted' }]);
});

test.each(['twice', 'out-of-order', 'before-the-answer'] as const)(
  'a message is delivered once where reports come %s',
  async (kind) => {
    for (const provider of ['twilio', 'bulksms'] as const) {
      fixture[provider].addFaults({ kind, times: 1 });
      const sent = await fixture.send(provider);
      await expect.poll(statusOf(sent)).toBe('delivered');
      await fixture[provider].idle();
      const { events } = await fixture.message(sent);
      expect((events as { type: string }[]).filter(({ type }) => type === 'message.delivered')).toHaveLength(1);
    }
  },
);

test('a report that somebody else signed is refused, and nothing is stored', async () => {
  fixture.twilio.addFaults({ kind: 'bad-signature', times: 1 });
  fixture.bulksms.addFaults({ kind: 'bad-signature', times: 1 });
  const before = await fixture.reports();
  const sent = await Promise.all([fixture.send('twilio'), fixture.send('bulksms')]);
  await Promise.all([fixture.twilio.idle(), fixture.bulksms.idle()]);
  for (const each of sent) await expect.poll(statusOf(each)).toBe('sent');
  const answers = [...fixture.twilio.notifications(), ...fixture.bulksms.notifications()].map(({ status }) => status);
  expect(new Set(answers)).toEqual(new Set([401]));
  const metrics = await fixture.metrics();
  for (const provider of ['twilio', 'bulksms'])
    expect(metrics).toMatch(
      new RegExp(
        `rollcall_provider_notifications_refused_total\\{.*provider="${provider}",reason="signature".*\\} [1-9]`,
      ),
    );
  expect(await fixture.reports()).toBe(before);
});

test('a provider that is not there, or tells nothing, is not found', async () => {
  const answer = await fetch(`${fixture.gateway.url}/api/v1/communication/notifications/none`, { method: 'POST' });
  expect(answer.status).toBe(404);
});

function permutationsOf<T>(items: readonly T[]): readonly T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, index) =>
    permutationsOf(items.filter((_, other) => other !== index)).map((rest) => [item, ...rest]),
  );
}

/** As Twilio posts it. @param search of the address that it was told. */
async function post(fields: Readonly<Record<string, string>>, search = ''): Promise<number> {
  const url = `${fixture.gateway.url}/api/v1/communication/notifications/twilio${search}`;
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'x-twilio-signature': twilioSignature(TWILIO_TOKEN, url, fields),
    },
    body: new URLSearchParams(fields).toString(),
  });
  return answer.status;
}

test('who answers STOP gets nothing more, from whoever wrote to them', async () => {
  await expect.poll(statusOf(await fixture.send('twilio'))).toBe('delivered');
  const answer = { MessageSid: 'SM1', From: '+447400123456', To: '+27600000001', Body: ' Stop\n' };
  expect(await post({ ...answer, Body: 'Thank you' })).toBe(204);
  expect(await post({ ...answer, MessageSid: 'SM2' })).toBe(204);
  await expect
    .poll(async () => (await fixture.ana('GET', '/suppressions')).body)
    .toMatchObject({ suppressions: [{ recipient: '+447400123456', channel: 'sms', reason: 'stop' }] });
  expect((await fixture.send('twilio')).body).toMatchObject({ status: 'suppressed', reason: 'stop' });
  await fixture.ana('DELETE', '/suppressions/+447400123456');
});

test.each(['twilio', 'bulksms'] as const)(
  'by %s, who answers STOP gets nothing more until they answer START',
  async (name) => {
    const from = NUMBERS[name];
    await expect.poll(statusOf(await fixture.send(name))).toBe('delivered');
    await fixture[name].write({ from, text: 'Stop ' });
    await expect.poll(async () => (await fixture.send(name)).body?.['status']).toBe('suppressed');
    await fixture.ana('PUT', `/suppressions/${from}`, { body: { scope: 'marketing' } });
    await fixture[name].write({ from, text: 'thanks' });
    await fixture[name].write({ from, text: 'start' });
    await expect.poll(async () => (await fixture.send(name)).body?.['status']).toBe('queued');
    // What their sender has decided is not theirs to undo.
    expect((await fixture.ana('GET', `/suppressions?recipient=${encodeURIComponent(from)}`)).body).toMatchObject({
      suppressions: [{ reason: 'manual' }],
    });
    await fixture.ana('DELETE', `/suppressions/${from}`);
  },
);

test('the end is the same in whatever order reports come, one after another or at once', async () => {
  const orders = permutationsOf(['queued', 'sent', 'delivered']);
  for (const isAtOnce of [false, true]) {
    for (const order of orders) {
      fixture.twilio.addFaults({ kind: 'never', times: 1 });
      const sent = await fixture.send('twilio');
      const id = String(sent.body?.['id']);
      const MessageSid = `SM${id.replaceAll('-', '')}`;
      const one = (MessageStatus: string) => post({ MessageSid, MessageStatus }, `?message=${id}`);
      const answers: number[] = [];
      if (isAtOnce) answers.push(...(await Promise.all(order.map(one))));
      else for (const status of order) answers.push(await one(status));
      expect(answers).toEqual([204, 204, 204]);
      await expect.poll(statusOf(sent)).toBe('delivered');
      expect(await one('sent')).toBe(204);
      expect(await statusOf(sent)()).toBe('delivered');
    }
  }
});
