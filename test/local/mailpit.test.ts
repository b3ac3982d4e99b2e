import { createTransport } from 'nodemailer';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createMailpit, MAILPIT_TIMEOUT_MS, type TestMailpit } from '../support/mailpit.ts';

let mailpit: TestMailpit;

beforeAll(async () => {
  mailpit = await createMailpit();
}, MAILPIT_TIMEOUT_MS);

afterEach(() => mailpit.chaos());
afterAll(() => mailpit[Symbol.asyncDispose]());

function send(subject: string, to = 'thandi@example.co.za') {
  const transport = createTransport({ host: '127.0.0.1', port: mailpit.smtpPort, secure: false, ignoreTLS: true });
  return transport.sendMail({
    from: { name: 'Rollcall', address: 'no-reply@example.com' },
    to: { name: 'Thandi', address: to },
    bcc: 'archive@example.com',
    subject,
    text: 'Ngiyabonga, Müller & Söhne',
    headers: { 'x-test': 'kept' },
  });
}

async function subjects(): Promise<string[]> {
  return (await mailpit.messages()).map(({ Subject }) => Subject);
}

test('a mail that is sent is there as it was sent, with the recipients of its envelope', async () => {
  const { messageId } = await send('Welcome, Thandi');
  const [mail] = await mailpit.messages();
  expect(mail).toMatchObject({
    MessageID: messageId.slice(1, -1),
    From: { Name: 'Rollcall', Address: 'no-reply@example.com' },
    To: [{ Name: 'Thandi', Address: 'thandi@example.co.za' }],
    Bcc: [{ Address: 'archive@example.com' }],
    Subject: 'Welcome, Thandi',
  });
  const raw = await mailpit.raw(mail?.ID ?? '');
  expect(raw).toMatch(/^x-test: kept\r$/im);
  expect(raw).toContain('M=C3=BCller & S=C3=B6hne');
  // What it received comes after what it has added.
  expect(raw.slice(raw.indexOf('Received:'))).not.toMatch(/^bcc:/im);
});

test('one that is told to refuse recipients does so with the code that was named, until it is told otherwise', async () => {
  await mailpit.chaos({ Recipient: { ErrorCode: 451, Probability: 100 } });
  await expect(send('Refused')).rejects.toMatchObject({ responseCode: 451, command: 'RCPT TO' });
  expect(await subjects()).not.toContain('Refused');
  await mailpit.chaos();
  await send('Accepted');
  expect(await subjects()).toContain('Accepted');
});

test('one that refuses senders says so before any recipient is named', async () => {
  await mailpit.chaos({ Sender: { ErrorCode: 550, Probability: 100 } });
  await expect(send('Refused')).rejects.toMatchObject({ responseCode: 550, command: 'MAIL FROM' });
});

test('what was accepted is there after a kill, at the same ports', async () => {
  await send('Before');
  await mailpit.kill();
  await expect(send('Meanwhile')).rejects.toMatchObject({ code: 'ESOCKET' });
  await mailpit.start();
  await send('After');
  expect(await subjects()).toEqual(expect.arrayContaining(['Before', 'After']));
  expect(await subjects()).not.toContain('Meanwhile');
});

test('more than the 500 are kept that Mailpit keeps by itself', async () => {
  const transport = createTransport({ host: '127.0.0.1', port: mailpit.smtpPort, pool: true, ignoreTLS: true });
  const before = (await subjects()).length;
  const mail = { from: 'a@example.com', to: 'b@example.com', text: '' };
  await Promise.all(Array.from({ length: 600 }, (_, n) => transport.sendMail({ ...mail, subject: `Number ${n}` })));
  transport.close();
  expect(await subjects()).toHaveLength(before + 600);
}, 120_000);
