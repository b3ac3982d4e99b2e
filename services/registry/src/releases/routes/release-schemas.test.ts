import { expect, test } from 'vitest';
import { releaseOf } from './release-schemas.ts';

test('an artifact is an image by default, and an empty checksum is none', () => {
  const body = {
    service_name: 'shop',
    version: '1.0.0',
    artifact_url: 'registry.example.com/shop:1.0.0',
    checksum: '',
  };
  expect(releaseOf(body)).toEqual({
    serviceName: 'shop',
    version: '1.0.0',
    artifact: { url: 'registry.example.com/shop:1.0.0', type: 'image', checksum: undefined },
  });
});
