import { apiClientKind, webhookConfigKind } from '@rollcall/crds/kinds.ts';
import type { Example, ExampleObject, Update } from './crd-example.ts';

function webhooks(spec: object): ExampleObject {
  return { name: 'shop', spec: { serviceName: 'shop', ...spec } };
}

function channel(url: string): ExampleObject {
  return webhooks({ endpoints: { slack: url } });
}

function client(spec: object): ExampleObject {
  return { name: 'ci', spec: { clientId: 'ci', secretRef: { name: 'ci-client' }, ...spec } };
}

const channelFault = 'each channel name must have 1 to 64 characters';
const scopeFault = 'each scope must be printable ASCII without spaces, double quotes and backslashes';

const webhookExamples: readonly Omit<Example, 'kind'>[] = [
  { sentence: 'the least there is', object: webhooks({}) },
  { sentence: 'channels for all services', object: { name: 'all', spec: { serviceName: '*' } } },
  {
    sentence: 'a channel and a secret',
    object: webhooks({ endpoints: { slack: 'https://x/y' }, secretRef: { name: 's' } }),
  },
  {
    sentence: '64 channels with the longest URLs',
    object: webhooks({
      endpoints: Object.fromEntries(
        Array.from({ length: 64 }, (_, index) => [`日本-${index}`, `http://hooks/${'x'.repeat(2048 - 13)}`]),
      ),
    }),
  },

  {
    sentence: 'a colon in the service name',
    object: webhooks({ serviceName: 'a:b' }),
    refusal: "must not contain ':'",
  },
  { sentence: 'a space in the service name', object: webhooks({ serviceName: ' ' }), refusal: "must not contain ':'" },
  {
    sentence: 'a relative URL',
    object: channel('/hook'),
    refusal: 'each endpoint must be an absolute http or https URL',
  },
  { sentence: 'a file: URL', object: channel('file:///etc/passwd'), refusal: 'each endpoint must be an absolute http' },
  { sentence: 'a password in a URL', object: channel('https://me:word@hooks'), refusal: 'must not carry credentials' },
  { sentence: 'a space in a URL', object: channel('https://hooks/a b'), refusal: 'must not contain white space' },
  {
    sentence: 'a channel without a name',
    object: webhooks({ endpoints: { '': 'http://hooks' } }),
    refusal: channelFault,
  },
  {
    sentence: 'a channel with a space',
    object: webhooks({ endpoints: { 'a b': 'http://hooks' } }),
    refusal: channelFault,
  },
  {
    sentence: 'a channel of 65 characters',
    object: webhooks({ endpoints: { ['c'.repeat(65)]: 'http://hooks' } }),
    refusal: channelFault,
  },
  {
    sentence: '65 channels',
    object: webhooks({
      endpoints: Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`c${index}`, 'http://hooks'])),
    }),
    refusal: 'must have at most 64 items',
  },
  { sentence: 'the secret itself', object: webhooks({ secret: 'word' }), refusal: 'unknown field "spec.secret"' },
  {
    sentence: 'a Secret with an impossible name',
    object: webhooks({ secretRef: { name: 'My Secret' } }),
    refusal: 'spec.secretRef.name',
  },
  {
    sentence: 'a reference to nothing',
    object: webhooks({ secretRef: {} }),
    refusal: 'spec.secretRef.name: Required value',
  },
  {
    sentence: 'an impossible key of a Secret',
    object: webhooks({ secretRef: { name: 's', key: 'a/b' } }),
    refusal: 'spec.secretRef.key',
  },
];

const clientExamples: readonly Omit<Example, 'kind'>[] = [
  { sentence: 'the least there is', object: client({}) },
  { sentence: 'a client with scopes', object: client({ tier: 'Premium', scopes: ['payments:read', 'admin/*'] }) },

  { sentence: 'no secret', object: client({ secretRef: undefined }), refusal: 'spec.secretRef: Required value' },
  {
    sentence: 'the secret itself',
    object: client({ clientSecret: 'word' }),
    refusal: 'unknown field "spec.clientSecret"',
  },
  { sentence: 'no client id', object: client({ clientId: undefined }), refusal: 'spec.clientId: Required value' },
  {
    sentence: 'a client id with a colon',
    object: client({ clientId: 'a:b' }),
    refusal: 'clientId must be letters, digits',
  },
  { sentence: 'an unknown tier', object: client({ tier: 'Gold' }), refusal: '"Premium", "Standard", "Free"' },
  { sentence: 'a scope with a space', object: client({ scopes: ['a b'] }), refusal: scopeFault },
  { sentence: 'a scope with a quote', object: client({ scopes: ['a"b'] }), refusal: scopeFault },
  { sentence: 'a scope with a backslash', object: client({ scopes: ['a\\b'] }), refusal: scopeFault },
  { sentence: 'a scope twice', object: client({ scopes: ['a', 'a'] }), refusal: 'Duplicate value: "a"' },
];

/** WebhookConfigs and ApiClients that the API server must accept, and such as it must refuse. */
export const accessExamples: readonly Example[] = [
  ...webhookExamples.map((example) => ({ kind: webhookConfigKind, ...example })),
  ...clientExamples.map((example) => ({ kind: apiClientKind, ...example })),
];

export const accessUpdates: readonly Update[] = [
  {
    kind: webhookConfigKind,
    sentence: 'another set of channels',
    before: channel('https://hooks/a'),
    patch: { spec: { endpoints: { slack: null, mail: 'https://hooks/b' } } },
  },
  {
    kind: webhookConfigKind,
    sentence: 'another service',
    before: webhooks({}),
    patch: { spec: { serviceName: 'store' } },
    refusal: 'serviceName is immutable',
  },
  {
    kind: webhookConfigKind,
    sentence: 'the time it was configured',
    before: webhooks({}),
    subresource: 'status',
    patch: { status: { configuredAt: '2026-11-20T12:00:00.5Z' } },
  },
  {
    kind: apiClientKind,
    sentence: 'another tier, other scopes and another secret',
    before: client({}),
    patch: { spec: { tier: 'Standard', scopes: ['a'], secretRef: { name: 'other', key: 'v2' } } },
  },
  {
    kind: apiClientKind,
    sentence: 'another client id',
    before: client({}),
    patch: { spec: { clientId: 'cd' } },
    refusal: 'clientId is immutable',
  },
];
