import { expect, test } from 'vitest';
import { signTwilio } from './twilio.ts';

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
