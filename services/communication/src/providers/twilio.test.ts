import { systemClock } from '@rollcall/platform/clock.ts';
import { MockAgent } from 'undici';
import { expect, test } from 'vitest';
import { createTwilio, signTwilio } from './twilio.ts';

test('a notification is signed as the vector of the official libraries says', () => {
  // Made with twilio 6.2.0 (npm) and twilio 9.13.0 (PyPI), which agree.
  const sid = 'SM00000000000000000000000000000001';
  const form = new URLSearchParams({
    To: '+27821234567',
    SmsStatus: 'delivered',
    SmsSid: sid,
    MessageStatus: 'delivered',
    MessageSid: sid,
    From: '+27600000001',
    ApiVersion: '2010-04-01',
    AccountSid: 'AC00000000000000000000000000000001',
  });
  const url = 'https://comms.example.co.za/hooks/twilio/status?tenant=a';
  expect(signTwilio(url, form, '12345')).toBe('lKKAwCxJQ4BQ28+cEDXLnOiUzeg=');
});

test.each([
  { sender: `MG${'0a'.repeat(16)}`, field: 'MessagingServiceSid' },
  { sender: 'MGM Foods', field: 'From' },
  { sender: `MG${'0a'.repeat(16)}1`, field: 'From' },
  { sender: '+27600000001', field: 'From' },
])('$sender is the $field', async ({ sender, field }) => {
  const dispatcher = new MockAgent();
  let form = new URLSearchParams();
  dispatcher
    .get('https://twilio.example')
    .intercept({ path: () => true, method: 'POST' })
    .reply(201, ({ body }) => {
      form = new URLSearchParams(typeof body === 'string' ? body : '');
      return { sid: 'SM1' };
    });
  const baseUrl = new URL('https://twilio.example');
  const settings = { accountSid: `AC${'0'.repeat(32)}`, authToken: 'a', sender, baseUrl, timeoutMs: 1000 };
  const twilio = createTwilio(settings, { dispatcher, clock: systemClock });
  const sms = { channel: 'sms', id: 'a', deduplicationId: 1, to: '+27821234567', text: 'x' } as const;
  expect(await twilio.send(sms, new AbortController().signal)).toMatchObject({ outcome: 'accepted' });
  expect(Object.fromEntries(form)).toEqual({ To: sms.to, Body: 'x', [field]: sender });
});

test('what a notification says is storable, whatever bytes it is of', async () => {
  const url = 'https://comms.example.co.za/hooks/twilio';
  const body = 'MessageSid=SM1%00&MessageStatus=delivered%ED%A0%BD';
  const headers = { 'x-twilio-signature': signTwilio(url, new URLSearchParams(body), 'a') };
  const settings = { accountSid: 'AC1', authToken: 'a', sender: 'MGM', baseUrl: new URL(url), timeoutMs: 1000 };
  const twilio = createTwilio(settings, { dispatcher: new MockAgent(), clock: systemClock });
  expect(await twilio.readNotification?.({ url, headers, body: Buffer.from(body) })).toMatchObject({
    reports: [{ providerId: 'SM1\uFFFD', eventKey: expect.stringMatching(/^SM1\uFFFD:delivered\uFFFD+$/) }],
  });
});
