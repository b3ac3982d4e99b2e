import { afterEach, beforeAll, expect, test } from 'vitest';
import { createMailpit, MAILPIT_TIMEOUT_MS, type TestMailpit } from '../support/mailpit.ts';
import { createToxiproxy, type FaultyWay, TOXIPROXY_TIMEOUT_MS } from '../support/toxiproxy.ts';

const stack = new AsyncDisposableStack();
let mailpit: TestMailpit;
let way: FaultyWay;

beforeAll(async () => {
  mailpit = stack.use(await createMailpit());
  const toxiproxy = stack.use(await createToxiproxy());
  way = await toxiproxy.wayTo(Number(new URL(mailpit.url).port));
  return () => stack.disposeAsync();
}, MAILPIT_TIMEOUT_MS + TOXIPROXY_TIMEOUT_MS);

afterEach(() => way.restore());

/** Sends a mail by Mailpit's API, on the way. @returns the body of the answer. */
async function send(subject: string): Promise<string> {
  const mail = { From: { Email: 'a@example.com' }, To: [{ Email: 'b@example.com' }], Subject: subject, Text: 'x' };
  const answer = await fetch(`http://127.0.0.1:${way.port}/api/v1/send`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify(mail),
    signal: AbortSignal.timeout(5_000),
  });
  return answer.text();
}

async function arrived(subject: string): Promise<boolean> {
  return (await mailpit.messages()).some(({ Subject }) => Subject === subject);
}

test('on a good way a request arrives and is answered', async () => {
  expect(await send('Good')).toContain('"ID"');
  expect(await arrived('Good')).toBe(true);
});

test('an answer can be lost after its request has arrived: who sent it cannot know', async () => {
  await way.add({ type: 'timeout', stream: 'downstream', attributes: { timeout: 0 } });
  // Mailpit ends the connection after its answer.
  await expect(send('Unknown')).rejects.toMatchObject({ cause: { code: 'UND_ERR_SOCKET', socket: { bytesRead: 0 } } });
  await expect.poll(() => arrived('Unknown')).toBe(true);
});

test('an answer can be cut off within its head', async () => {
  await way.add({ type: 'limit_data', stream: 'downstream', attributes: { bytes: 20 } });
  await expect(send('Half')).rejects.toThrow('fetch failed');
  await expect.poll(() => arrived('Half')).toBe(true);
});

test('a request can be kept from arriving', async () => {
  await way.add({ type: 'timeout', stream: 'upstream', attributes: { timeout: 0 } });
  await expect(send('Never')).rejects.toMatchObject({ name: 'TimeoutError' });
  expect(await arrived('Never')).toBe(false);
});

test('a way that is cut refuses connections, until it is restored', async () => {
  await way.cut();
  await expect(send('Refused')).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
  await way.restore();
  expect(await send('Restored')).toContain('"ID"');
  expect(await arrived('Refused')).toBe(false);
});
