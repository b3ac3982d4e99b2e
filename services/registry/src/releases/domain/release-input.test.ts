import { expect, test } from 'vitest';
import type { Release } from './release.ts';
import { checkRelease } from './release-input.ts';

const sha256 = `sha256:${'ab'.repeat(32)}`;
const sha512 = `sha512:${'0f'.repeat(64)}`;

interface Fields {
  readonly version?: string;
  readonly artifactUrl?: string;
  readonly artifactType?: 'image' | 'binary';
  readonly checksum?: string | undefined;
}

function release({ version = '1.0.0', artifactUrl = 'shop:1.0.0', artifactType = 'image', checksum }: Fields): Release {
  const made = { serviceName: 'shop', version, artifact: { url: artifactUrl, type: artifactType, checksum } };
  checkRelease(made);
  return made;
}

test.each(['1', '1.0.0', 'v1.2.3-rc.1+build.7', '2026-11-20_a', 'größe', 'x'.repeat(128), '1%', '...'])(
  'version %j is legal',
  (version) => {
    expect(release({ version }).version).toBe(version);
  },
);

test.each(['', '.', '..', ' ', '1 0', '1\t', 'a/b', '1\u0000', '1\u007f', '1\u00a0', '\ud800', 'x'.repeat(129)])(
  'version %j is refused',
  (version) => {
    expect(() => release({ version })).toThrow(/^version must/);
  },
);

test.each([
  'shop',
  'shop:1.0.0',
  'library/shop@sha256:' + 'a'.repeat(64),
  'localhost:5000/team/shop:v1',
  'registry.example.com/a/b__c/d-e.f:TAG_1',
  '[::1]:5000/shop',
])('%j is an image', (artifactUrl) => {
  expect(release({ artifactUrl, checksum: sha256 }).artifact.url).toBe(artifactUrl);
});

test.each([
  '',
  'Shop',
  'https://registry.example.com/shop',
  'shop:',
  'shop:a b',
  'shop@sha256:abc',
  '-shop',
  'a//b',
  'x'.repeat(2049),
])('%j is no image', (artifactUrl) => {
  expect(() => release({ artifactUrl })).toThrow(/^artifact_url/);
});

test.each([sha256, sha512, sha256.toUpperCase().replace('SHA', 'sha')])(
  'a binary may have the checksum %j',
  (checksum) => {
    const artifactUrl = 'https://files.example.com/shop-1.0.0?x=1#y';
    expect(release({ artifactType: 'binary', artifactUrl, checksum }).artifact.checksum).toBe(checksum);
  },
);

test.each([
  { artifactUrl: 'https://files.example.com/shop', checksum: undefined, fault: 'checksum is required' },
  { artifactUrl: 'http://files.example.com/shop', checksum: sha256, fault: 'https' },
  { artifactUrl: 'ftp://files.example.com/shop', checksum: sha256, fault: 'http' },
  { artifactUrl: '/shop', checksum: sha256, fault: 'absolute' },
  { artifactUrl: 'https://user:pw@files.example.com/shop', checksum: sha256, fault: 'credentials' },
  { artifactUrl: 'https://files.example.com/a b', checksum: sha256, fault: 'white space' },
  { artifactUrl: 'https://files.example.com/shop', checksum: 'md5:abc', fault: 'checksum must be' },
  { artifactUrl: 'https://files.example.com/shop', checksum: 'sha256:abc', fault: 'checksum must be' },
  { artifactUrl: 'https://files.example.com/shop', checksum: `${sha256}0`, fault: 'checksum must be' },
])('a binary at $artifactUrl with $checksum is refused: $fault', ({ artifactUrl, checksum, fault }) => {
  expect(() => release({ artifactType: 'binary', artifactUrl, checksum })).toThrow(fault);
  expect(() => release({ artifactType: 'binary', artifactUrl, checksum })).not.toThrow('pw');
});

test('an image cannot be pinned by sha512', () => {
  expect(() => release({ checksum: sha512 })).toThrow('sha256');
});
