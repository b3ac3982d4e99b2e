import { expect, test } from 'vitest';
import { type SmtpFailure, smtpOutcome } from './smtp-outcome.ts';

const to = 'ana@example.com';
const gone = { kind: 'address-unknown' };
const rcpt = (responseCode: number, response: string, recipient = to): SmtpFailure => ({
  code: 'EENVELOPE',
  command: 'RCPT TO',
  responseCode,
  response: `${responseCode} ${response}`,
  recipient,
});

test.each<{ failure: SmtpFailure; outcome: object }>([
  {
    failure: rcpt(550, '5.1.1 no such user'),
    outcome: { outcome: 'refused', cause: 'recipient', reason: '550 5.1.1', suppress: gone },
  },
  { failure: rcpt(550, 'no such user'), outcome: { outcome: 'refused', cause: 'recipient', reason: '550' } },
  {
    failure: rcpt(552, '5.2.2 mailbox full'),
    outcome: { outcome: 'refused', cause: 'recipient', reason: '552 5.2.2' },
  },
  {
    failure: rcpt(550, '5.7.1 relaying denied'),
    outcome: { outcome: 'refused', cause: 'sender', reason: '550 5.7.1' },
  },
  { failure: rcpt(450, '4.2.2 full'), outcome: { outcome: 'failed', reason: '450 4.2.2' } },
  { failure: rcpt(421, '4.7.0 later'), outcome: { outcome: 'failed', reason: '421 4.7.0', retryAfterMs: 1000 } },
  { failure: rcpt(503, 'bad sequence'), outcome: { outcome: 'failed', reason: '503' } },
  {
    failure: { code: 'EENVELOPE', command: 'MAIL FROM', responseCode: 550, response: '550 5.1.8 bad sender' },
    outcome: { outcome: 'refused', cause: 'sender', reason: '550 5.1.8' },
  },
  {
    failure: { code: 'EMESSAGE', command: 'DATA', responseCode: 554, response: '554 5.7.1 spam' },
    outcome: { outcome: 'refused', cause: 'content', reason: '554 5.7.1' },
  },
  {
    failure: { code: 'EENVELOPE', command: 'MAIL FROM', responseCode: 552, response: '552 5.3.4 too big' },
    outcome: { outcome: 'refused', cause: 'size', reason: '552 5.3.4' },
  },
  {
    failure: { code: 'EENVELOPE', command: 'MAIL FROM', responseCode: 552, response: '552 too big' },
    outcome: { outcome: 'refused', cause: 'size', reason: '552' },
  },
  {
    failure: { code: 'EMESSAGE', command: 'DATA', responseCode: 552, response: '552 too big' },
    outcome: { outcome: 'refused', cause: 'size', reason: '552' },
  },
  { failure: rcpt(523, 'too big'), outcome: { outcome: 'refused', cause: 'size', reason: '523' } },
  { failure: rcpt(552, 'full'), outcome: { outcome: 'refused', cause: 'recipient', reason: '552' } },
  {
    failure: { code: 'EMESSAGE', command: 'MAIL FROM' },
    outcome: { outcome: 'refused', cause: 'size', reason: 'EMESSAGE' },
  },
  {
    failure: { code: 'EAUTH', command: 'AUTH PLAIN', responseCode: 535, response: '535 5.7.8 bad password' },
    outcome: { outcome: 'refused', cause: 'credentials', reason: '535 5.7.8' },
  },
  {
    failure: { code: 'EAUTH', command: 'AUTH PLAIN', responseCode: 454, response: '454 4.7.0 later' },
    outcome: { outcome: 'failed', reason: '454 4.7.0', retryAfterMs: 1000 },
  },
  {
    failure: { code: 'EAUTH', command: 'API' },
    outcome: { outcome: 'refused', cause: 'credentials', reason: 'EAUTH' },
  },
  {
    failure: { code: 'EENVELOPE', command: 'RCPT TO', response: 'It works!' },
    outcome: { outcome: 'failed', reason: 'EENVELOPE' },
  },
  { failure: { code: 'ESOCKET', command: 'CONN' }, outcome: { outcome: 'failed', reason: 'ESOCKET' } },
  { failure: {}, outcome: { outcome: 'failed', reason: 'unknown' } },
])('$failure before the mail has begun is $outcome', ({ failure, outcome }) => {
  expect(smtpOutcome(failure, { to, hasBegun: false })).toEqual(outcome);
});

test('no answer after the mail has begun is unknown, and an answer is one', () => {
  expect(smtpOutcome({ code: 'ECONNECTION' }, { to, hasBegun: true })).toEqual({
    outcome: 'unknown',
    reason: 'ECONNECTION',
  });
  expect(smtpOutcome({ code: 'EMESSAGE', command: 'DATA', responseCode: 451 }, { to, hasBegun: true })).toEqual({
    outcome: 'failed',
    reason: '451',
  });
});

test.each([undefined, 99, 200, 354, 999])('an answer of %s to a whole mail is none', (responseCode) => {
  const failure = { code: 'EMESSAGE', command: 'DATA', responseCode, response: `${responseCode} what` };
  expect(smtpOutcome(failure, { to, hasBegun: true })).toEqual({ outcome: 'unknown', reason: 'EMESSAGE' });
});

test('of several recipients that were refused, one that may yet be taken keeps the mail', () => {
  const rejectedErrors = [rcpt(550, '5.1.1 x'), rcpt(450, '4.2.1 x', 'cc@example.com')];
  const failure = { ...rcpt(550, '5.1.1 x'), rejectedErrors };
  expect(smtpOutcome(failure, { to, hasBegun: false })).toEqual({ outcome: 'failed', reason: '450 4.2.1' });
});

test('of several recipients that were refused for good, the first decides', () => {
  const rejectedErrors = [rcpt(550, '5.1.1 x', 'cc@example.com'), rcpt(550, '5.2.1 x')];
  const failure = { ...rcpt(550, '5.1.1 x', 'cc@example.com'), rejectedErrors };
  expect(smtpOutcome(failure, { to, hasBegun: false })).toEqual({
    outcome: 'refused',
    cause: 'recipient',
    reason: '550 5.2.1',
  });
});
