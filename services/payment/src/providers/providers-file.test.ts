import { systemClock } from '@rollcall/platform/clock.ts';
import { Agent } from 'undici';
import { expect, test } from 'vitest';
import { parseProviders } from './providers-file.ts';

const deps = {
  clock: systemClock,
  dispatcher: new Agent(),
  timeoutMs: 1000,
  isProduction: true,
  publicUrl: 'https://api.example.com',
  resolve: () => Promise.reject(new Error('none')),
};
const yoco = { secretKey: 'sk_live_hidden', webhookSecrets: ['whsec_hidden'] };
const sandbox = { secret: 'whsec_hidden' };

test('one provider is the default one, several have to say which', () => {
  expect(parseProviders(JSON.stringify({ providers: { yoco } }), deps)).toMatchObject({
    default: 'yoco',
    names: ['yoco'],
  });
  const stripe = { secretKey: 'sk_live_hidden', webhookSecrets: ['whsec_hidden'] };
  const both = parseProviders(JSON.stringify({ providers: { yoco, stripe } }), deps);
  expect([both.default, both.find('stripe')?.name, both.find('payfast')]).toEqual([undefined, 'stripe', undefined]);
});

test.each([
  ['no YAML', '{', /not YAML/],
  ['an unknown provider', { providers: { paypal: yoco } }, /\/providers must not have additional properties/],
  [
    'a key of the wrong kind',
    { providers: { yoco: { ...yoco, secretKey: 'hidden' } } },
    /\/providers\/yoco\/secretKey/,
  ],
  ['no secret of notifications', { providers: { yoco: { ...yoco, webhookSecrets: [] } } }, /webhookSecrets/],
  ['the sandbox in production', { providers: { sandbox } }, /\/providers\/sandbox .*refused in production/],
  ['a provider by http', { providers: { yoco: { ...yoco, apiUrl: 'http://hidden.example.com' } } }, /yoco .*https/],
  ['a default without settings', { default: 'stripe', providers: { yoco } }, /\/default has no settings/],
  [
    'two faults at once',
    { default: 'stripe', providers: { sandbox, yoco: { ...yoco, apiUrl: 'ftp://hidden' } } },
    /\/providers\/yoco .*\/providers\/sandbox .*\/default/,
  ],
])('%s is a fault that is named, and nothing of the file is', (_what, file, fault) => {
  const text = typeof file === 'string' ? file : JSON.stringify(file);
  const parse = () => parseProviders(text, deps);
  expect(parse).toThrow(fault);
  expect(parse).not.toThrow(/hidden/);
});

test('the sandbox is there to be tried', () => {
  const file = JSON.stringify({ providers: { sandbox } });
  expect(parseProviders(file, { ...deps, isProduction: false }).sandbox).toEqual({ ...sandbox, isProduction: false });
});
