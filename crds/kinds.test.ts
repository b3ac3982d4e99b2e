import { readdir, readFile } from 'node:fs/promises';
import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { parse } from 'yaml';
import {
  apiClientKind,
  apiGroup,
  apiVersion,
  deliveryJobKind,
  deliveryPolicyKind,
  objectNameFor,
  serviceRegistrationKind,
  webhookConfigKind,
} from './kinds.ts';

const dnsLabel = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const hashedName = /^([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)\.[0-9a-f]{16}$/;

/**
 * Any text the CRD admits as a service name: 1 to 253 code points, and here even some that it
 * refuses.
 */
const anyName = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 253 }),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 100 }),
  fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 253 }),
  fc.stringMatching(/^[a-z0-9.-]{1,80}$/),
);

const isLabel = (text: string): boolean => dnsLabel.test(text) && text.length <= 63;

describe('objectNameFor', () => {
  test.each([
    ['a plain label stays', 'shop', 'shop'],
    ['a label of digits stays', '42', '42'],
    ['a label of 63 characters stays', 'a'.repeat(63), 'a'.repeat(63)],
    ['upper case is folded', 'Shop', 'shop.d00aae6b7fbf77a4'],
    ['another case is another name', 'SHOP', 'shop.1ed8f0748b4186f6'],
    ['dots become hyphens', 'shop.v2', 'shop-v2.'],
    ['64 characters are one too many', 'a'.repeat(64), `${'a'.repeat(63)}.`],
    ['a hyphen at an end is no label', '-shop-', 'shop.'],
    ['accents fall off', 'Café Müller', 'cafe-muller.'],
    ['compatibility forms fold to ASCII', 'ｓｈｏｐ①', 'shop1.'],
    ['a name without ASCII letters gets a slug of its own', '店', 'service.'],
    ['a cut slug ends in no hyphen', `${'a'.repeat(62)}-b-c`, `${'a'.repeat(62)}.`],
    ['the name for all services', '*', 'service.'],
    ['what looks like a hashed name is hashed again', 'shop.0123456789abcdef', 'shop-0123456789abcdef.'],
  ])('%s', (_sentence, serviceName, expected) => {
    const name = objectNameFor(serviceName);
    expect(name.slice(0, expected.length)).toBe(expected);
    expect(name).toMatch(isLabel(serviceName) ? dnsLabel : hashedName);
  });

  it('appends the first 16 hex digits of the SHA-256 of the UTF-8 name', () => {
    // printf 'Größe' | sha256sum
    expect(objectNameFor('Größe')).toBe('gro-e.aedc3f80989a6546');
  });

  it('makes a legal object name of any text', () => {
    fc.assert(
      fc.property(anyName, (serviceName) => {
        const name = objectNameFor(serviceName);
        expect(name.length).toBeLessThanOrEqual(253);
        for (const part of name.split('.')) {
          expect(part).toMatch(dnsLabel);
          expect(part.length).toBeLessThanOrEqual(63);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('leaves labels, and only labels, as they are', () => {
    fc.assert(
      fc.property(anyName, (serviceName) => {
        const name = objectNameFor(serviceName);
        expect(name === serviceName).toBe(isLabel(serviceName));
        expect(hashedName.test(name)).toBe(!isLabel(serviceName));
      }),
      { numRuns: 2_000 },
    );
  });

  it('gives distinct names to distinct services', () => {
    const owners = new Map<string, string>();
    const samples = fc.sample(anyName, 50_000);
    for (const base of samples.slice(0, 5_000))
      samples.push(base.toUpperCase(), base.toLowerCase(), objectNameFor(base));
    for (const serviceName of samples) {
      const name = objectNameFor(serviceName);
      expect(owners.get(name) ?? serviceName).toBe(serviceName);
      owners.set(name, serviceName);
    }
  });
});

describe('the kinds', () => {
  const described = [apiClientKind, deliveryJobKind, deliveryPolicyKind, serviceRegistrationKind, webhookConfigKind];

  it('are all of one group and version', () => {
    expect(apiVersion.startsWith(`${apiGroup}/`)).toBe(true);
    expect(described.map((kind) => kind.apiVersion)).toEqual(described.map(() => apiVersion));
  });

  it('are those of the YAML files, and no other', async () => {
    const files = (await readdir(import.meta.dirname)).filter((name) => name.endsWith('.yaml'));
    const defined = await Promise.all(
      files.map(async (file) => {
        const { spec } = parse(await readFile(new URL(file, import.meta.url), 'utf8'));
        const version = spec.versions.find((candidate: { storage: boolean }) => candidate.storage);
        return {
          apiVersion: `${spec.group}/${version.name}`,
          kind: spec.names.kind,
          plural: spec.names.plural,
          namespaced: spec.scope === 'Namespaced',
        };
      }),
    );
    expect(new Set(defined)).toEqual(new Set(described));
  });
});
