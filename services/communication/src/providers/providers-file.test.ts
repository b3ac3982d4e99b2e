import { describe, expect, test } from 'vitest';
import { parseProviders } from './providers-file.ts';

const smtp = { name: 'main', kind: 'smtp', host: 'mail.example', bounceDomain: 'shop.example' };
const from = { address: 'shop@shop.example', name: 'Acacia' };
const twilio = {
  name: 'twilio',
  kind: 'twilio',
  accountSid: `AC${'0'.repeat(32)}`,
  authToken: 'SECRET',
  sender: '+27600000001',
};
const rules = { addresses: 'public' } as const;

const parsed = (file: unknown, addresses: 'public' | 'cluster' | 'any' = 'public') =>
  parseProviders(JSON.stringify(file), { addresses });

test('what a file leaves out is filled in', () => {
  const config = parsed({ email: { from, providers: [smtp] }, sms: { providers: [twilio] } });
  expect(config.email).toMatchObject({
    from,
    providers: [{ port: 587, tls: 'required', priority: 0, weight: 1, timeoutSeconds: 10, connections: 5 }],
  });
  expect(config.sms).toMatchObject({ region: 'ZA', byCountry: {}, providers: [{ baseUrl: 'https://api.twilio.com' }] });
  expect(config.push.providers).toEqual([]);
});

test.each(['', '{}', 'email:\n  from: {address: a@b.example}\n'])('a file without providers is one: %j', (text) => {
  const config = parseProviders(text, rules);
  expect([config.email, config.sms, config.push].flatMap(({ providers }) => providers)).toEqual([]);
});

describe('what is wrong is named, and nothing of a secret', () => {
  test.each([
    [{ mail: {} }, 'mail'],
    [{ email: { providers: [smtp] } }, '/email/from is required'],
    [{ email: { from: { address: 'a' }, providers: [smtp] } }, '/email/from/address must be one address'],
    [
      { email: { from, providers: [{ ...smtp, kind: 'twilio' }] } },
      '/email/providers/0/kind must be one of smtp, sendgrid',
    ],
    [{ email: { from, providers: [smtp, smtp] } }, 'two providers have the name main'],
    [{ email: { from, providers: [{ ...smtp, port: 0 }] } }, '/email/providers/0/port'],
    [{ email: { from, providers: [{ ...smtp, passwort: 'SECRET' }] } }, 'passwort'],
    [{ sms: { providers: [{ ...twilio, accountSid: 'SECRET' }] } }, '/sms/providers/0/accountSid'],
    [{ sms: { region: 'XX', providers: [] } }, '/sms/region must be a country'],
    [{ sms: { byCountry: { ZA: ['none'] }, providers: [] } }, '/sms/byCountry/ZA names none'],
    [{ sms: { byCountry: { XX: ['twilio'] }, providers: [twilio] } }, '/sms/byCountry/XX'],
    [
      { sms: { providers: [{ ...twilio, baseUrl: 'http://api.example' }] } },
      'the provider twilio: the base URL must be of https',
    ],
    [
      { sms: { providers: [{ ...twilio, baseUrl: 'https://10.0.0.1' }] } },
      'the provider twilio: the base URL leads to',
    ],
    [{ sms: { providers: [{ ...twilio, baseUrl: 'https://user:SECRET@api.example' }] } }, 'must not hold credentials'],
  ])('%j', (file, fault) => {
    expect(() => parsed(file)).toThrow(fault);
    expect(() => parsed(file)).not.toThrow('SECRET');
  });

  test('all of it at once', () => {
    const file = { email: { providers: [{ ...smtp, port: 0 }] }, sms: { providers: [{ ...twilio, sender: '' }] } };
    expect(() => parsed(file)).toThrow(/email\/providers\/0\/port[\s\S]*sms\/providers\/0\/sender[\s\S]*email\/from/);
  });

  test('a file that is no YAML is not shown', () => {
    expect(() => parseProviders('authToken: "SECRET', rules)).toThrow('the file is not YAML');
  });
});

test('simulators on this machine are for settings that allow any address', () => {
  const file = { sms: { providers: [{ ...twilio, baseUrl: 'http://127.0.0.1:4100' }] } };
  expect(() => parsed(file)).toThrow('not allowed');
  expect(parsed(file, 'any').sms.providers).toHaveLength(1);
});
