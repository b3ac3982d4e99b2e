import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { startCommunication } from './communication-service.ts';
import { writeProviders } from './providers-file.ts';

const POLL = { timeout: 60_000 };
const LARGE = 6;
/** Two of them are on their way at a time. */
const LARGE_BYTES = 5 * 2 ** 20;

/** A mail server that takes a mail when it is told to. */
async function startMailServer() {
  const held: { readonly isLarge: boolean; readonly answer: () => void }[] = [];
  const arrived: string[] = [];
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS', 'AUTH'],
    logger: false,
    onData(stream, session, answer) {
      stream.resume();
      stream.once('end', () => {
        const [to = { address: '' }] = session.envelope.rcptTo;
        arrived.push(to.address);
        held.push({ isLarge: to.address.startsWith('large'), answer: () => answer(null) });
      });
    },
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.server.address() as AddressInfo).port,
    held,
    arrived,
    [Symbol.dispose]: () => server.close(),
  };
}

test('few large mails are sent at a time, small ones pass them, and each leaves once', {
  timeout: 180_000,
}, async () => {
  await using stack = new AsyncDisposableStack();
  const { port, held, arrived } = stack.use(await startMailServer());
  const smtp = { name: 'mx', kind: 'smtp', host: '127.0.0.1', port, tls: 'none', bounceDomain: 'shop.example' };
  const providers = {
    email: { from: { address: 'shop@shop.example' }, providers: [{ ...smtp, connections: 10, timeoutSeconds: 50 }] },
  };
  const databaseUrl = stack.use(await createDatabase()).url;
  const service = stack.use(await startCommunication({ databaseUrl, settings: await writeProviders(providers) }));
  const ana = await service.callerOf('ana');
  const content = Buffer.alloc(LARGE_BYTES, 7).toString('base64');
  const send = (to: string, attachments: readonly object[] = []) =>
    ana('POST', '/emails', { body: { to, subject: 'Papers', text: 'As asked', attachments } });

  const papers = [{ filename: 'papers.bin', contentType: 'application/octet-stream', content }];
  const large = Array.from({ length: LARGE }, (_, index) => `large-${index}@example.com`);
  for (const to of large) expect(await send(to, papers)).toMatchObject({ status: 202 });
  await expect.poll(() => held.length, POLL).toBe(2);
  const small = Array.from({ length: 5 }, (_, index) => `small-${index}@example.com`);
  for (const to of small) expect(await send(to)).toMatchObject({ status: 202 });
  await expect.poll(() => held.length, POLL).toBe(2 + small.length);
  expect(held.filter(({ isLarge }) => isLarge)).toHaveLength(2);

  let most = 0;
  const sent = async () => {
    most = Math.max(most, held.filter(({ isLarge }) => isLarge).length);
    for (const { answer } of held.splice(0)) answer();
    return (await ana('GET', '/messages?status=sent&limit=1')).body?.['total'];
  };
  await expect.poll(sent, POLL).toBe(large.length + small.length);
  expect(most).toBeLessThanOrEqual(2);
  expect(arrived.toSorted()).toEqual([...large, ...small].toSorted());
});
