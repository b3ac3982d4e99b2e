import { expect, test } from 'vitest';
import { readDeliveryStatus } from './delivery-status.ts';

const id = '0191f0a0-0000-7000-8000-000000000001';

interface Parts {
  readonly to?: string;
  readonly envelope?: string;
  readonly recipients?: readonly string[];
  readonly returned?: string;
  readonly type?: string;
}

const failed = 'Final-Recipient: rfc822; ana@example.com\nAction: failed\nStatus: 5.1.1';

function mail({ to = 'x@shop.example', envelope, recipients = [failed], returned, type }: Parts): Buffer {
  const ofMail = ['Reporting-MTA: dns; mx.example', ...(envelope === undefined ? [] : [envelope])].join('\n');
  const text = `From: MAILER-DAEMON@mx.example
To: ${to}
Subject: Undelivered Mail
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: text/plain

Ana's mailbox ana@example.com is not here. Status: 5.1.1

--b
Content-Type: ${type ?? 'message/delivery-status'}

${[ofMail, ...recipients].join('\n\n')}

--b
Content-Type: text/rfc822-headers

${returned ?? 'Subject: Hello'}

--b--
`;
  return Buffer.from(text.replaceAll('\n', '\r\n'));
}

const ours = `Original-Envelope-Id: ${id}`;

test.each([
  ['the envelope id that we gave', { envelope: ours }],
  ['the address that it is returned to', { to: `<bounces+${id}@shop.example>` }],
  [
    'the Message-ID of what is returned',
    { returned: `To: a@b.example\nMessage-ID: <${id.toUpperCase()}@shop.example>` },
  ],
])('a mail is known by %s', async (_what, parts) => {
  expect(await readDeliveryStatus(mail(parts))).toMatchObject([{ messageId: id, recipient: 'ana@example.com' }]);
});

test.each([
  ['no part with a status', { envelope: ours, type: 'text/plain' }],
  ['a mail of others', { envelope: 'Original-Envelope-Id: 7', returned: 'Message-ID: <7@mx.example>' }],
  ['an id with more behind it', { envelope: `${ours}' OR 1=1` }],
])('%s is none of ours', async (_what, parts) => {
  expect(await readDeliveryStatus(mail(parts))).toBeUndefined();
});

test.each([
  ['failed', '5.1.1', 'bounced', true],
  ['failed', '5.1.10 (no such domain)', 'bounced', true],
  ['Failed', '5.2.2', 'bounced', false],
  ['failed', '5.7.1', 'bounced', false],
  // Postfix, after five days with a server that deferred, or whose mailbox was full.
  ['failed', '4.2.2', 'bounced', false],
  ['failed', '4.4.1', 'bounced', false],
  ['failed', '4.1.1', 'bounced', false],
  ['delayed', '4.2.2', undefined, false],
  ['delayed', '5.1.1', undefined, false],
  ['delivered', '2.0.0', 'delivered', false],
  ['relayed', '2.0.0', 'sent', false],
  ['expanded', '2.0.0', 'sent', false],
  ['vanished', '5.1.1', undefined, false],
])('%s with %s is %s, and suppresses: %s', async (action, status, ...expected) => {
  const recipients = [`Final-Recipient: rfc822; ana@example.com\nAction: ${action}\nStatus: ${status}`];
  const [report] = (await readDeliveryStatus(mail({ envelope: ours, recipients }))) ?? [];
  expect([report?.receipt, report?.suppress?.kind === 'address-unknown']).toEqual(expected);
});

test('each recipient has a report, by the address that we sent to, and nothing that the server wrote is kept', async () => {
  const recipients = [
    `Original-Recipient: rfc822;ana@example.com\nFinal-Recipient: rfc822; hidden@inside.example\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.7.1 <ana@example.com>:\n Blocked`,
    'Final-Recipient: RFC822;\n <bob@example.com>\nAction: delayed\nStatus: 4.4.1',
    'Final-Recipient: x400; /C=za/\nAction: failed\nStatus: 5.1.1',
    'Final-Recipient: rfc822; eve@example.com\nAction: failed',
  ];
  const reports = await readDeliveryStatus(mail({ envelope: ours, recipients }));
  expect(reports).toEqual([
    {
      eventKey: expect.stringMatching(/^[\w-]{43}$/),
      messageId: id,
      recipient: 'ana@example.com',
      receipt: 'bounced',
      reason: '5.1.1',
      isUnproven: true,
      suppress: { kind: 'address-unknown' },
    },
    { eventKey: expect.any(String), messageId: id, recipient: 'bob@example.com', reason: '4.4.1', isUnproven: true },
  ]);
});

const keyOf = async (parts: Parts) => (await readDeliveryStatus(mail(parts)))?.[0]?.eventKey;

test('the same report that comes again has the same key, and another one has another', async () => {
  const key = await keyOf({ envelope: ours });
  expect(await keyOf({ to: `bounces+${id}@shop.example`, returned: 'Subject: again' })).toBe(key);
  expect(await keyOf({ envelope: ours, recipients: [failed.replace('5.1.1', '4.2.2')] })).not.toBe(key);
});

test.each([
  ['nothing', ''],
  ['bytes', Buffer.from(Array.from({ length: 5000 }, (_, index) => index % 256))],
  [
    'parts in parts without end',
    `Content-Type: multipart/mixed; boundary=b\n\n${'--b\nContent-Type: multipart/mixed; boundary=b\n\n'.repeat(20_000)}`,
  ],
  ['one endless line', `To: ${'a'.repeat(1_000_000)}`],
])('%s is no report, and takes no time', async (_what, content) => {
  const started = performance.now();
  expect(await readDeliveryStatus(Buffer.from(content))).toBeUndefined();
  expect(performance.now() - started).toBeLessThan(20_000);
});

test('of a thousand recipients two hundred are read', async () => {
  const recipients = Array.from({ length: 1000 }, (_, each) => failed.replace('ana', `ana${each}`));
  expect(await readDeliveryStatus(mail({ envelope: ours, recipients }))).toHaveLength(200);
});
