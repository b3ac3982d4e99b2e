import { expect, test } from 'vitest';
import { meantBy } from './misspelt-members.ts';

const deploy = [
  'service_name',
  'version',
  'artifact_url',
  'artifact_type',
  'checksum',
  'strategy',
  'webhook_secret',
  'secret',
];

test.each([
  ['webhook_secrett', 'webhook_secret'],
  ['webhookSecret', 'webhook_secret'],
  ['WEBHOOK-SECRET', 'webhook_secret'],
  ['Secret', 'secret'],
  ['sercet', 'secret'],
  ['secrt', 'secret'],
  ['signing_secret', 'webhook_secret'],
  ['check_sum', 'checksum'],
  ['chekcsum', 'checksum'],
  ['stratgey', 'strategy'],
  ['artifactUrl', 'artifact_url'],
])('%s means %s', (name, meant) => {
  expect(meantBy(name, deploy)).toBe(meant);
});

test.each(['x', 'commit', 'branch', 'pipeline_id', 'image', 'state', 'tags', ...deploy])('%s means itself', (name) => {
  expect(meantBy(name, deploy)).toBeUndefined();
});

test('a secret is meant where none can be', () => {
  expect(meantBy('webhook_secret', ['service_name', 'channel'])).toBe('secret');
});
